//! Tests the check, on valid pages and on faulty ones.

use super::page::Page;
use super::{Site, document_faults, resolve};

/// Returns the faults of a crate whose front page has this body, and whose second page has the place `here`.
fn faults(body: &str) -> Vec<String> {
    faults_at("a/index.html", body)
}

fn faults_at(path: &str, body: &str) -> Vec<String> {
    let other = r#"<h2 id="here">Here</h2>"#;
    let pages = [(path, body), ("a/b/struct.B.html", other)];
    let files = [path, "a/b/struct.B.html", "src/a/lib.rs.html", "help.html"].map(String::from);
    let site = Site {
        pages: pages.map(|(path, html)| (path.to_string(), Page::parse(html))).into(),
        files: files.into(),
        packaged: ["README.md".to_string(), "tests/rules.md".to_string()].into(),
        has_source: Box::new(|file| file == "client/mod.rs"),
    };
    site.faults()
}

#[test]
fn a_good_page_has_no_faults() {
    let good = r##"<h1 id="top">It</h1><script>var a = "DESIGN rule 1 <a href='x'>";</script>
        <a href="#top">up</a> <a href="b/struct.B.html#here">B</a> <a class="src" href=../src/a/lib.rs.html#1-3>source</a>
        <a href="../help.html?go">help</a> <a href="https://example.com/DESIGN.md">DESIGN.md</a>
        README.md, tests/rules.md, client/mod.rs::new, other.rs. An id that is linked: <a href="#top">S-COM-05</a>. No ids: C-3, X-COM-05, S-com-05, UTF-8."##;
    assert_eq!(faults(good), Vec::<String>::new());
}

#[test]
fn a_citation_of_a_design_rule_is_a_fault() {
    let expected = "a/index.html: cites a DESIGN rule: link to the manual instead";
    assert_eq!(faults("as DESIGN rule 4 says"), [expected]);
    assert_eq!(faults("as DESIGN <em>rule 4</em> says"), [expected]);
}

#[test]
fn an_unlinked_rule_id_is_a_fault_except_in_the_catalogue() {
    assert_eq!(faults("(C-SOTW-04, as always)"), ["a/index.html: C-SOTW-04 is not linked"]);
    assert_eq!(faults("<p>S-COM-03</p>"), ["a/index.html: S-COM-03 is not linked"]);
    assert_eq!(faults_at("a/manual/catalogue/index.html", "<td>C-SOTW-04</td>"), Vec::<String>::new());
}

#[test]
fn a_markdown_file_that_is_not_packaged_is_a_fault() {
    assert_eq!(faults("see <code>real-clients.md</code>."), ["a/index.html: real-clients.md is not in the package"]);
    assert_eq!(faults("see spec/DESIGN.md."), ["a/index.html: spec/DESIGN.md is not in the package"]);
}

#[test]
fn a_missing_source_file_is_a_fault() {
    assert_eq!(faults("in <code>client/gone.rs</code>"), ["a/index.html: there is no source file client/gone.rs"]);
}

#[test]
fn a_dead_link_is_a_fault() {
    let dead =
        |link: &str, target: &str| format!("a/index.html: the link to {link} leads nowhere: {target} is not there");
    assert_eq!(faults(r#"<a href="c/index.html">C</a>"#), [dead("c/index.html", "a/c/index.html")]);
    assert_eq!(faults(r#"<a href="../b/">B</a>"#), [dead("../b/", "b/index.html")]);
    assert_eq!(faults("<a href='#gone'>gone</a>"), [dead("#gone", "#gone of a/index.html")]);
    let link = "b/struct.B.html#gone";
    assert_eq!(faults(&format!("<a href=\"{link}\">B</a>")), [dead(link, "#gone of a/b/struct.B.html")]);
}

#[test]
fn dead_links_in_texts_of_other_crates_are_ignored() {
    assert_eq!(faults(r#"<a href="crate::Service">Service</a>"#), Vec::<String>::new());
    let blanket = r##"<h2 id="blanket-implementations">..</h2><a href="dispatcher#it">it</a>"##;
    assert_eq!(faults(blanket), Vec::<String>::new());
}

#[test]
fn a_document_link_to_a_missing_file_is_a_fault() {
    let exists = |target: &str| ["README.md", "examples", "docs/b.md"].contains(&target);
    let faults = |text: &str| document_faults("docs/a.md", text, exists);
    let good = "[1](../README.md#top) [2](https://example.com/c.md) [3](../examples) [4](#here) [5](b.md)";
    assert_eq!(faults(good), Vec::<String>::new());
    assert_eq!(faults("[1](c.md)"), ["docs/a.md: the link to c.md leads nowhere"]);
}

#[test]
fn paths_are_relative_to_their_page() {
    assert_eq!(resolve("a/b/c.html", "../d.html"), "a/d.html");
    assert_eq!(resolve("a/b/c.html", "./d/"), "a/b/d/");
    assert_eq!(resolve("README.md", "tests/rules.md"), "tests/rules.md");
}

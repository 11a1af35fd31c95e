//! Templates of Listener names, in which `%s` stands for the service of a target or the address of a server.

use alloc::string::String;

use xds_machine::ResourceName;

use super::percent;

/// A template of Listener names.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Template(String);

impl Template {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Makes a name: replaces every `%s` (R-BOOT-32). In a structured name the text is percent-encoded (R-BOOT-33), and
    /// the directives of the template are dropped, because directives are never sent (R-BOOT-37).
    pub(super) fn name(&self, text: &str) -> ResourceName {
        if !self.0.starts_with("xdstp:") {
            return self.0.replace("%s", text).into();
        }
        let template = self.0.split('#').next().unwrap_or_default();
        template.replace("%s", &percent::encode(text, percent::in_path)).into()
    }
}

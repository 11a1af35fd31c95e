#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xds_machine_fuzz::resources(data));

//! Reads whatever libFuzzer makes up with the reader that `VTI_READER` names.
#![no_main]

use std::sync::OnceLock;

use vti_cli::untrusted::{Reader, reader};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static READER: OnceLock<Reader> = OnceLock::new();
    let reader = READER.get_or_init(|| {
        let name = std::env::var("VTI_READER").unwrap_or_default();
        reader(&name).unwrap_or_else(|| panic!("VTI_READER={name}: there is no such reader"))
    });
    (reader.read)(bytes);
});

//! The document on the vendor's flags says what each does here.

use ascend_agent::config::{Kind, VENDOR_FLAGS};

const FLAGS: &str = include_str!("../../docs/compat-flags.md");

#[test]
fn every_flag_of_the_vendors_plugin_stands_in_its_document_as_it_works() {
    let rows = VENDOR_FLAGS.iter().map(|flag| {
        let value = match flag.kind {
            Kind::Bool => "truth value".to_owned(),
            Kind::Int { .. } | Kind::Text => flag.allowed(),
        };
        let (name, default) = (flag.name, flag.default_text());
        format!(
            "| `-{name}` | {value} | `{default}` | {} | {} |",
            flag.doc,
            flag.here()
        )
    });
    let missing: Vec<String> = rows.filter(|row| !FLAGS.contains(row.as_str())).collect();
    assert!(
        missing.is_empty(),
        "missing or outdated in docs/compat-flags.md:\n{}",
        missing.join("\n")
    );
}

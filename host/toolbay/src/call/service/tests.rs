//! Tests of `service`.

use super::*;

#[test]
fn a_result_names_no_view() {
    let meta = json!({"ui": {"resourceUri": "ui://chart/view"}, "ui/resourceUri": "ui://chart/view", "x": 1});
    let mut output = ToolOutput {
        meta: meta.as_object().unwrap().clone(),
        ..ToolOutput::default()
    };
    remove_view_links(&mut output);
    assert_eq!(Value::Object(output.meta), json!({"x": 1}));
}

//! Restricts what a reply says about views to what the grant allows.

use toolbay_catalog::VIEW_LINKS;
use toolbay_model::text::clean_line;
use toolbay_model::{CallObserver, CallReply, DenialKind, ResourceItem, ToolOutput};

use crate::approval::call_target::CallTarget;

/// Maximum length of a URI in a denial, in bytes: it comes from guests.
const MAX_URI_BYTES: usize = 1_000;

/// Restricts what a reply says about views. For a view that was read, removes what the grant does
/// not allow it to access. In a tool's result, removes references to views.
pub(crate) fn apply_view_grant(
    target: &CallTarget,
    mut reply: CallReply,
    observer: &dyn CallObserver,
) -> CallReply {
    if let CallReply::Tool(output) = &mut reply {
        remove_view_links(output);
    }
    let (CallTarget::Resource(offer), CallReply::Resource(items)) = (target, &mut reply) else {
        return reply;
    };
    let grant = &offer.plugin.terms.context.permissions.ui;
    for ResourceItem { resource, meta } in items {
        for denied in offer.entry.limit_meta(&resource.uri, meta, grant) {
            let what = format!(
                "The view {} may not have {denied}.",
                clean_line(&resource.uri, MAX_URI_BYTES)
            );
            observer.denied(DenialKind::View, &what, Some(&denied.remedy()));
        }
        if resource.mime_type.is_none() {
            resource.mime_type.clone_from(&offer.resource().mime_type);
        }
    }
    reply
}

/// Removes the members that name a view from a result. They belong in the tool's definition, where
/// it is checked that the plugin owns the view.
fn remove_view_links(output: &mut ToolOutput) {
    for member in VIEW_LINKS {
        output.meta.remove(member);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
}

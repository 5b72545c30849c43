//! The access that a view requests, and the part of it that a grant allows.

use serde_json::{Map, Value};
use toolbay_policy::{UiAccess, UiDenial};

use crate::definition::view::{self, ViewRequest};

/// The access that a view requests.
#[derive(Clone, Debug)]
pub(crate) enum RequestedView {
    /// The access that the plugin requests.
    FromPlugin(ViewRequest),
    /// Everything that the grant allows. The view is a file of the operator, who also wrote the
    /// grant.
    EverythingGranted,
}

/// The parts of a resource's definition that depend on whether it is a view.
pub(crate) struct DefinedView {
    /// The access that it requests as a view; `None` if it is not a view.
    pub(crate) requested: Option<RequestedView>,
    /// The MIME type. A view without one has that of views.
    pub(crate) mime_type: Option<String>,
    /// Warnings for the operator, without the URI.
    pub(crate) warnings: Vec<String>,
}

impl RequestedView {
    /// Returns the `_meta` for clients under a grant, and the access that the grant denies.
    pub(crate) fn granted_meta(&self, grant: &UiAccess) -> (Map<String, Value>, Vec<UiDenial>) {
        match self {
            Self::FromPlugin(request) => request.granted_meta(grant),
            Self::EverythingGranted => (view::access_meta(grant, None), Vec::new()),
        }
    }
}

impl DefinedView {
    /// Removes the members that only views have from `meta`, and parses them. No other member of a
    /// view's `_meta` reaches clients.
    pub(crate) fn take(
        uri: &str,
        meta: &mut Map<String, Value>,
        mime_type: Option<String>,
    ) -> Self {
        if !view::is_view(uri) {
            let warnings = if meta.remove(view::META_MEMBER).is_some() {
                vec![
                    "ui in its _meta has no effect, because its URI does not begin with \"ui://\""
                        .to_owned(),
                ]
            } else {
                Vec::new()
            };
            return Self {
                requested: None,
                mime_type,
                warnings,
            };
        }
        let request = ViewRequest::read(meta);
        let mut warnings = request.warnings.clone();
        meta.clear();
        let mime_type = mime_type.unwrap_or_else(|| view::MIME_TYPE.to_owned());
        if mime_type != view::MIME_TYPE {
            warnings.push(format!(
                "clients do not show {mime_type}, only {}",
                view::MIME_TYPE
            ));
        }
        Self {
            requested: Some(RequestedView::FromPlugin(request)),
            mime_type: Some(mime_type),
            warnings,
        }
    }
}

//! The approval question to the user: which tool, what it can access, and with which arguments.

use serde_json::json;
use sha2::{Digest as _, Sha256};
use toolbay_catalog::{ApprovalPolicy, ToolOffer};
use toolbay_model::text::{escape_json, format_thousands};
use toolbay_model::{Digest, JsonText, Question, QuestionKind};
use toolbay_secrets::SecretFilter;

use super::excerpt::{ArgumentExcerpt, excerpt};
use super::json_escape::visible_line;
use super::permission_text::permission_lines;
use super::remembered_approvals::ApprovalScope;
use super::{APPROVAL_KEY, APPROVE_FIELD};

/// Maximum length of a plugin name, in characters. The name is a file name.
const MAX_NAME_CHARS: usize = 100;

/// Calls that an approval covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalValidity {
    /// Only this call.
    Once,
    /// Also later calls of the tool in the session.
    Session,
    /// Also later calls of the tool by the caller, for an hour.
    Hour,
}

impl ApprovalValidity {
    pub(crate) fn from_policy(policy: ApprovalPolicy, scope: Option<ApprovalScope>) -> Self {
        match (policy, scope) {
            (ApprovalPolicy::Each, _) | (ApprovalPolicy::First, None) => Self::Once,
            (ApprovalPolicy::First, Some(ApprovalScope::Session(_))) => Self::Session,
            (ApprovalPolicy::First, Some(ApprovalScope::Caller)) => Self::Hour,
        }
    }

    /// Returns the calls that an approval covers, for a label such as `Approve this call`.
    pub(crate) const fn covered_calls(self) -> &'static str {
        match self {
            Self::Once => "this call",
            Self::Session => "all calls in this session",
            Self::Hour => "all calls for one hour",
        }
    }

    const fn field_title(self) -> &'static str {
        match self {
            Self::Once => "Allow this call",
            Self::Session => "Allow all calls of this tool in this session",
            Self::Hour => "Allow all calls of this tool for one hour",
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::Once => "Your answer counts only for this call.",
            Self::Session => {
                "A yes counts for all further calls of this tool in this session as well, whatever their arguments are."
            }
            Self::Hour => {
                "A yes counts for all further calls of this tool within one hour as well, whatever their arguments are."
            }
        }
    }
}

/// Builds the question about a call with these arguments. Takes time in proportion to the length of
/// `arguments`, which is JSON text.
///
/// The arguments come first: they are what the person decides about, and a client may show only the
/// beginning of a long text. They have their own lines, which nothing else can imitate. The text
/// above them announces what follows, so that a truncation is noticeable.
pub(crate) fn approval_question(
    offer: &ToolOffer,
    arguments: &str,
    secrets: &SecretFilter,
    validity: ApprovalValidity,
) -> Question {
    let context = offer.plugin.tool_context(&offer.definition.tool.name);
    let permissions: Vec<String> = permission_lines(context)
        .iter()
        .map(|words| format!("    + {words}"))
        .collect();
    // Tool names contain only safe characters.
    let tool = &offer.tool.name;
    let plugin = visible_line(&offer.plugin.id, MAX_NAME_CHARS);
    let validity_sentence = validity.sentence();
    let rendered_arguments = render_arguments(arguments, secrets);
    let lines_phrase = match permissions.len() {
        1 => "a line that begins with + says".to_owned(),
        n => format!("{n} lines that begin with + say"),
    };
    let message = format!(
        "The operator of this server requires a person to allow this call. {validity_sentence} Below the arguments, {lines_phrase} what \
         the plugin can do.\n\n    tool    {tool}\n    plugin  \
         {plugin}\n\n{rendered_arguments}\n\nDuring the call, the plugin can:\n\n{}",
        permissions.join("\n")
    );
    let field = json!({"type": "boolean", "title": validity.field_title()});
    let schema = json!({"type": "object", "properties": {APPROVE_FIELD: field}, "required": [APPROVE_FIELD]});
    let params = JsonText::from(json!({"message": message, "requestedSchema": schema}));
    Question {
        key: APPROVAL_KEY.to_owned(),
        kind: QuestionKind::Form,
        params,
    }
}

/// Formats the arguments below a sentence that states how much of them is shown.
fn render_arguments(arguments: &str, secrets: &SecretFilter) -> String {
    // Redaction removes invisible characters. Escaped, they remain visible.
    let escaped = escape_json(arguments);
    let redacted = secrets.scrub(&escaped);
    let ArgumentExcerpt { lines, hidden } = excerpt(&redacted);
    let bytes = format_thousands(arguments.len() as u64);
    let mut summary = if hidden == 0 {
        format!("The arguments are complete ({bytes} bytes).")
    } else {
        let digest = Digest::new(Sha256::digest(arguments).into());
        let hidden_bytes = format_thousands(hidden as u64);
        format!(
            "The arguments are NOT complete: of {bytes} bytes, {hidden_bytes} are left out where a line begins with ~. Say \
             no if you do not know their content. SHA-256 of all: {digest}."
        )
    };
    if redacted != escaped {
        summary.push_str(" Secrets of the plugin are left out.");
    }
    format!(
        "{summary} Only lines that begin with | are arguments; the caller of the tool wrote them:\n\n{lines}"
    )
}

//! The login page, and the page for rejected forms.

use maud::{Markup, html};

use super::layout::{document, logo};
use crate::paths::PATH;

/// Renders the login page. `advice` explains where to find a token. `why` is the error of the
/// previous attempt.
pub(crate) fn login(advice: &str, why: Option<&str>) -> Markup {
    document(
        "Log in",
        &html! {
            main.door #main {
                div.brand { (logo()) span { "Toolbay" } }
                h1 { "Open the console" }
                p { (advice) }
                @if let Some(why) = why { p.error #why role="alert" { (why) } }
                form method="post" action={ (PATH) "/login" } data-login {
                    label for="token" { "Token" }
                    input #token type="password" name="token" required autofocus autocomplete="off" spellcheck="false"
                        aria-describedby=[why.map(|_| "why")] aria-invalid=[why.map(|_| "true")];
                    button type="submit" { "Open" }
                }
                // Browsers send no cookie when a user follows a link from another site, but they do
                // with this link.
                p.hint { "If it is open in this browser already, " a href=(PATH) { "go on" } "." }
            }
        },
    )
}

/// Renders the page for a valid token that does not open the console.
pub(crate) fn no_right(name: &str) -> Markup {
    document(
        "No access",
        &html! {
            main.door #main {
                div.brand { (logo()) span { "Toolbay" } }
                h1 { "Your token does not open the console" }
                p {
                    "The token is valid: it belongs to " code { (name) } ", which may call tools. The console needs a token with "
                    code { "admin = true" } " in " code { "http.tokens" } ". Ask the operator of this server for one."
                }
                p { a href={ (PATH) "/login" } { "Use another token" } }
            }
        },
    )
}

/// Renders the reason that a form was rejected.
pub(crate) fn rejected_form(why: &str) -> Markup {
    document(
        "Rejected",
        &html! {
            main.door #main {
                div.brand { (logo()) span { "Toolbay" } }
                h1 { "Request rejected" }
                p { (why) }
                p { a href=(PATH) { "Back to the console" } }
            }
        },
    )
}

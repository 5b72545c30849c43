//! The page that asks for a token, and the one that rejects a form.

use maud::{Markup, html};

use super::layout::{document, mark};
use crate::paths::PATH;

/// Asks for a token. `advice` says where to find one, and `why` what was wrong with the last.
pub(crate) fn login(advice: &str, why: Option<&str>) -> Markup {
    document(
        "Log in",
        &html! {
            main.door #main {
                div.brand { (mark()) span { "Toolbay" } }
                h1 { "Open the console" }
                p { (advice) }
                @if let Some(why) = why { p.error #why role="alert" { (why) } }
                form method="post" action={ (PATH) "/login" } data-login {
                    label for="token" { "Token" }
                    input #token type="password" name="token" required autofocus autocomplete="off" spellcheck="false"
                        aria-describedby=[why.map(|_| "why")] aria-invalid=[why.map(|_| "true")];
                    button type="submit" { "Open" }
                }
                // A link of another site comes without the cookie, and this one with it.
                p.hint { "If it is open in this browser already, " a href=(PATH) { "go on" } "." }
            }
        },
    )
}

/// Says why a form was rejected.
pub(crate) fn refused(why: &str) -> Markup {
    document(
        "Rejected",
        &html! {
            main.door #main {
                div.brand { (mark()) span { "Toolbay" } }
                h1 { "That was rejected" }
                p { (why) }
                p { a href=(PATH) { "Back to the console" } }
            }
        },
    )
}

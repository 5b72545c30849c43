//! A plugin without tools, written against the contract alone: prompts, resources and completion.
//! Some of what it offers misbehaves in a way that its name says.

#![allow(
    clippy::panic,
    clippy::needless_pass_by_value,
    reason = "misbehaving is part of what it is for"
)]

mod bindings {
    #![allow(
        unsafe_code,
        unreachable_pub,
        missing_docs,
        clippy::pedantic,
        reason = "generated"
    )]
    #![allow(
        clippy::indexing_slicing,
        clippy::allow_attributes_without_reason,
        reason = "generated"
    )]

    wit_bindgen::generate!({
        path: "../../../wit/0.2.0",
        inline: "
            package test:library;
            world library {
                import toolbay:plugin/host@0.2.0;
                export toolbay:plugin/prompts@0.2.0;
                export toolbay:plugin/resources@0.2.0;
                export toolbay:plugin/completion@0.2.0;
            }
        ",
        world: "test:library/library",
        generate_all,
    });

    export!(Library with_types_in self);

    use super::Library;
}

use bindings::exports::toolbay::plugin::{completion, prompts, resources};
use bindings::toolbay::plugin::host;
use bindings::toolbay::plugin::types::{
    CompletionRequest, Completions, Content, Failure, Icon, PromptArgument, PromptDefinition,
    PromptMessage, PromptOutput, ReferenceKind, ResourceContents, ResourceDefinition,
    ResourceTemplate, Role,
};

/// The bytes that every PNG begins with.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A view that tries to reach the server at the port in its URI, and says what it reached.
const PROBE: &str = include_str!("../../../apps/probe.html");

/// What a view says of itself that no client should ever be told.
const GREEDY: &str = r#"{"ui": {"csp": {"connectDomains": ["https://api.example.com", "*", "https://a.example; script-src *"],
    "resourceDomains": ["https://*.example.org", "data:", "'unsafe-eval'"]}, "permissions": {"camera": {}, "usb": {}},
    "prefersBorder": true, "anything": 1}, "openai/widgetCSP": {"connect_domains": ["https://evil.example"]}}"#;

/// Who wrote the books.
const AUTHORS: [&str; 4] = ["austen", "balzac", "borges", "woolf"];

/// What misbehaves, by the last part of its URI or by the argument `how` of its prompt.
const WAYS: [&str; 13] = [
    "fail",
    "refuse",
    "loop",
    "panic",
    "huge",
    "large",
    "many",
    "both",
    "neither",
    "elsewhere",
    "mime",
    "meta",
    "uri",
];

struct Library;

impl prompts::Guest for Library {
    fn list_prompts() -> Vec<PromptDefinition> {
        vec![
            PromptDefinition {
                title: Some("Review a book".to_owned()),
                description: Some("Begins a review of a book.".to_owned()),
                arguments: vec![argument("author", true), argument("style", false)],
                icons: vec![Icon {
                    src: "https://library.example/review.png".to_owned(),
                    mime_type: Some("image/png".to_owned()),
                    sizes: vec!["48x48".to_owned()],
                    theme: None,
                }],
                meta: Some(r#"{"library.example/shelf":7}"#.to_owned()),
                ..prompt("review")
            },
            prompt("cover"),
            PromptDefinition {
                arguments: vec![argument("how", true)],
                ..prompt("misbehave")
            },
        ]
    }

    fn get_prompt(name: String, arguments: Vec<(String, String)>) -> Result<PromptOutput, Failure> {
        let argument = |wanted: &str| {
            arguments
                .iter()
                .find(|(name, _)| name == wanted)
                .map(|(_, value)| value.as_str())
        };
        let messages = match name.as_str() {
            "review" => {
                let style = argument("style").unwrap_or("plain");
                let asked = format!(
                    "Review {} in a {style} style.",
                    argument("author").unwrap_or_default()
                );
                vec![
                    message(Role::User, text(&asked)),
                    message(Role::Assistant, text("Which book?")),
                ]
            }
            "cover" => {
                let picture = Content {
                    data: Some(PNG.to_vec()),
                    mime_type: Some("image/png".to_owned()),
                    ..block("image")
                };
                let catalog = Content {
                    uri: Some("library://catalog".to_owned()),
                    text: Some(AUTHORS.join("\n")),
                    ..block("embedded-resource")
                };
                vec![message(Role::User, picture), message(Role::User, catalog)]
            }
            "misbehave" => match argument("how").unwrap_or_default() {
                "many" => vec![message(Role::User, text("")); 10_000],
                "huge" => vec![message(Role::User, text(&"x".repeat(1 << 30)))],
                "neither" => vec![message(Role::User, block("text"))],
                how => return Err(misbehaved(how)),
            },
            name => return Err(Failure::Failed(format!("There is no prompt {name}."))),
        };
        Ok(PromptOutput {
            description: Some(format!("About {name}")),
            messages,
            meta: None,
        })
    }
}

impl resources::Guest for Library {
    fn list_resources() -> Vec<ResourceDefinition> {
        vec![
            ResourceDefinition {
                title: Some("The catalog".to_owned()),
                description: Some("Every author, one a line.".to_owned()),
                mime_type: Some("text/plain".to_owned()),
                size: Some(AUTHORS.join("\n").len() as u64),
                audience: vec![Role::User, Role::Assistant, Role::User],
                priority: Some(0.5),
                last_modified: Some("2026-01-12T15:00:58Z".to_owned()),
                ..resource("library://catalog", "catalog")
            },
            ResourceDefinition {
                mime_type: Some("image/png".to_owned()),
                ..resource("library://cover", "cover")
            },
            ResourceDefinition {
                meta: Some(GREEDY.to_owned()),
                ..resource("ui://library/reader", "reader")
            },
        ]
    }

    fn list_resource_templates() -> Vec<ResourceTemplate> {
        vec![
            ResourceTemplate {
                description: Some("A book.".to_owned()),
                mime_type: Some("text/plain".to_owned()),
                audience: vec![Role::Assistant],
                ..template("library://books/{author}/{title}", "book")
            },
            template("library://misbehave/{how}", "misbehave"),
            template("ui://library/probe/{port}", "probe"),
        ]
    }

    fn read_resource(uri: String) -> Result<Vec<ResourceContents>, Failure> {
        if let Some(view) = uri.strip_prefix("ui://library/") {
            return Ok(vec![self::view(&uri, view)]);
        }
        let parts: Vec<&str> = uri.trim_start_matches("library://").split('/').collect();
        let contents = match parts.as_slice() {
            ["catalog"] => ResourceContents {
                mime_type: Some("text/plain".to_owned()),
                meta: Some(r#"{"library.example/authors":4}"#.to_owned()),
                ..item(&uri, &AUTHORS.join("\n"))
            },
            ["cover"] => ResourceContents {
                text: None,
                data: Some(PNG.to_vec()),
                mime_type: Some("image/png".to_owned()),
                ..item(&uri, "")
            },
            ["books", author, title] if AUTHORS.contains(author) => {
                host::resource_updated(&uri);
                let whole = item(&uri, &format!("{title} by {author}"));
                return Ok(vec![whole, item(&format!("{uri}/notes"), "None.")]);
            }
            ["misbehave", how] => {
                let whole = item(&uri, "whole");
                match *how {
                    "many" => return Ok(vec![whole; 10_000]),
                    "huge" => ResourceContents {
                        text: Some("x".repeat(1 << 30)),
                        ..whole
                    },
                    "large" => ResourceContents {
                        text: Some("x".repeat(8 << 20)),
                        ..whole
                    },
                    "both" => ResourceContents {
                        data: Some(vec![1]),
                        ..whole
                    },
                    "neither" => ResourceContents {
                        text: None,
                        ..whole
                    },
                    "elsewhere" => ResourceContents {
                        uri: "library://catalog".to_owned(),
                        ..whole
                    },
                    "uri" => ResourceContents {
                        uri: format!("{uri}/ \u{1b}[2J"),
                        ..whole
                    },
                    "mime" => ResourceContents {
                        mime_type: Some("text/plain\r\nx: y".to_owned()),
                        ..whole
                    },
                    "meta" => ResourceContents {
                        meta: Some("[]".to_owned()),
                        ..whole
                    },
                    how => return Err(misbehaved(how)),
                }
            }
            _ => return Ok(Vec::new()),
        };
        Ok(vec![contents])
    }
}

impl completion::Guest for Library {
    fn complete(request: CompletionRequest) -> Result<Completions, Failure> {
        let CompletionRequest {
            kind,
            name,
            argument,
            value,
            context,
        } = request;
        let (values, total) = match argument.as_str() {
            "author" => (AUTHORS.map(str::to_owned).to_vec(), None),
            "title" => {
                let author = context
                    .iter()
                    .find(|(name, _)| name == "author")
                    .map_or("nobody", |(_, value)| value);
                (vec![format!("{value} of {author}")], Some(1))
            }
            "style" => (
                (0..1_000).map(|n| format!("style {n}")).collect(),
                Some(1_000),
            ),
            "how" if matches!(kind, ReferenceKind::ResourceTemplate) => {
                (WAYS.map(str::to_owned).to_vec(), Some(3))
            }
            "how" if value == "huge" => (vec!["x".repeat(2_000), "\u{1b}[31mred".to_owned()], None),
            "how" => return Err(misbehaved(&value)),
            argument => {
                return Err(Failure::InvalidArguments(format!(
                    "{name} has no argument {argument}."
                )));
            }
        };
        let fits = |candidate: &String| argument != "author" || candidate.starts_with(&value);
        Ok(Completions {
            values: values.into_iter().filter(fits).collect(),
            total,
            has_more: false,
        })
    }
}

/// A view. The probe asks for everything at its port, and what no origin is.
fn view(uri: &str, view: &str) -> ResourceContents {
    let Some(port) = view.strip_prefix("probe/") else {
        return item(uri, "<!doctype html><title>Reader</title>");
    };
    let here = format!("http://127.0.0.1:{port}");
    let meta = format!(
        r#"{{"ui": {{"csp": {{"connectDomains": ["{here}", "ws://127.0.0.1:{port}", "*", "'self' {here}"],
            "resourceDomains": ["{here}", "data:; connect-src *"], "frameDomains": ["{here}", "*"], "baseUriDomains":
            ["{here}"]}}, "permissions": {{"clipboardWrite": {{}}, "camera": {{}}}}}}, "x/csp": "{here}"}}"#
    );
    ResourceContents {
        meta: Some(meta),
        ..item(uri, PROBE)
    }
}

/// What becomes of the ways to misbehave that are the same everywhere.
fn misbehaved(how: &str) -> Failure {
    match how {
        "fail" => Failure::Failed("The library is closed.".to_owned()),
        "refuse" => Failure::InvalidArguments("Nobody misbehaves like that.".to_owned()),
        "loop" => loop {
            std::hint::black_box(());
        },
        how => panic!("as asked: {how}"),
    }
}

fn prompt(name: &str) -> PromptDefinition {
    PromptDefinition {
        name: name.to_owned(),
        title: None,
        description: None,
        arguments: Vec::new(),
        icons: Vec::new(),
        meta: None,
    }
}

fn argument(name: &str, required: bool) -> PromptArgument {
    PromptArgument {
        name: name.to_owned(),
        title: None,
        description: Some(format!("The {name}.")),
        required,
    }
}

fn resource(uri: &str, name: &str) -> ResourceDefinition {
    ResourceDefinition {
        uri: uri.to_owned(),
        name: name.to_owned(),
        title: None,
        description: None,
        mime_type: None,
        size: None,
        audience: Vec::new(),
        priority: None,
        last_modified: None,
        icons: Vec::new(),
        meta: None,
    }
}

fn template(uri: &str, name: &str) -> ResourceTemplate {
    ResourceTemplate {
        uri_template: uri.to_owned(),
        name: name.to_owned(),
        title: None,
        description: None,
        mime_type: None,
        audience: Vec::new(),
        priority: None,
        icons: Vec::new(),
        meta: None,
    }
}

fn message(role: Role, content: Content) -> PromptMessage {
    PromptMessage { role, content }
}

fn item(uri: &str, text: &str) -> ResourceContents {
    ResourceContents {
        uri: uri.to_owned(),
        mime_type: None,
        text: Some(text.to_owned()),
        data: None,
        meta: None,
    }
}

fn text(text: &str) -> Content {
    Content {
        text: Some(text.to_owned()),
        ..block("text")
    }
}

fn block(kind: &str) -> Content {
    Content {
        kind: kind.to_owned(),
        text: None,
        data: None,
        mime_type: None,
        uri: None,
        name: None,
        title: None,
        description: None,
        size: None,
        audience: Vec::new(),
        priority: None,
        last_modified: None,
        members: None,
    }
}

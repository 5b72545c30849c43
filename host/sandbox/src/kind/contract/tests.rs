//! Tests of plugins that offer prompts, resources and completion: their lists, their replies, and
//! misbehavior that the host must stop.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytesize::ByteSize;
use parking_lot::Mutex;
use toolbay_model::{
    CallError, CallObserver, CallReply, CompletionReference, CompletionRequest, CompletionResult,
    ContentBody, Limit, Limits, LogLevel, NoopObserver, ProgressUpdate, PromptOutput,
    ResourceContent, ResourceItem,
};
use toolbay_testkit::{TinyComponent, TinyCoreModule, guests};

use super::ExportedContract;
use crate::test_sandbox::{TrialComponent, sandbox};
use crate::{PluginContext, PluginRequest};

/// The guest that offers everything but tools.
static LIBRARY: LazyLock<TrialComponent> =
    LazyLock::new(|| TrialComponent::new(&sandbox(), guests::guest("library").unwrap()).unwrap());

/// Limits that suffice for each guest that ends, and that soon stop a guest that runs forever.
fn hasty() -> Limits {
    Limits {
        timeout: Duration::from_secs(20),
        fuel: 2_000_000_000,
        ..Limits::DEFAULT
    }
}

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn get(name: &str, arguments: &[(&str, &str)]) -> Result<PromptOutput, CallError> {
    let environment = PluginContext {
        limits: hasty(),
        ..PluginContext::default()
    };
    let request = PluginRequest::Prompt {
        name,
        arguments: &pairs(arguments),
    };
    match LIBRARY
        .request_in(&environment, Arc::new(NoopObserver), request)
        .result?
    {
        Some(CallReply::Prompt(output)) => Ok(output),
        other => panic!("{other:?}"),
    }
}

/// Returns an empty list if the resource does not exist.
fn read_within(limits: Limits, uri: &str) -> Result<Vec<ResourceItem>, CallError> {
    let environment = PluginContext {
        limits,
        ..PluginContext::default()
    };
    match LIBRARY
        .request_in(
            &environment,
            Arc::new(NoopObserver),
            PluginRequest::Resource { uri },
        )
        .result?
    {
        Some(CallReply::Resource(items)) => Ok(items),
        None => Ok(Vec::new()),
        other => panic!("{other:?}"),
    }
}

fn read(uri: &str) -> Result<Vec<ResourceItem>, CallError> {
    read_within(hasty(), uri)
}

fn complete(
    reference: CompletionReference,
    argument: &str,
    value: &str,
) -> Result<CompletionResult, CallError> {
    let argument = argument.to_owned();
    let value = value.to_owned();
    let context = pairs(&[("author", "woolf")]);
    let request = CompletionRequest {
        reference,
        argument,
        value,
        context,
    };
    match LIBRARY.request(PluginRequest::Completion(&request))? {
        Some(CallReply::Completion(completions)) => Ok(completions),
        other => panic!("{other:?}"),
    }
}

fn prompt(name: &str) -> CompletionReference {
    CompletionReference::Prompt(name.to_owned())
}

fn book() -> CompletionReference {
    CompletionReference::Resource("library://books/{author}/{title}".to_owned())
}

#[test]
fn a_plugin_without_tools_lists_the_rest_at_once() {
    let description = &LIBRARY.description;
    assert_eq!(
        LIBRARY.form(),
        "it exports toolbay:plugin/{prompts, resources, completion}@0.2.0"
    );
    assert!(
        description.tools.is_empty() && description.completes && description.remarks.is_empty(),
        "{description:?}"
    );
    let names: Vec<_> = description
        .prompts
        .iter()
        .map(|prompt| prompt.name.as_str())
        .collect();
    assert_eq!(names, ["review", "cover", "misbehave"]);
    let review = &description.prompts[0];
    assert_eq!(review.title.as_deref(), Some("Review a book"));
    assert_eq!(
        review.meta.as_deref(),
        Some(r#"{"library.example/shelf":7}"#)
    );
    assert_eq!(review.icons[0].sizes, ["48x48"]);
    let arguments: Vec<_> = review
        .arguments
        .iter()
        .map(|argument| (&*argument.name, argument.required))
        .collect();
    assert_eq!(arguments, [("author", true), ("style", false)]);
    let uris: Vec<_> = description
        .resources
        .iter()
        .map(|resource| resource.uri.as_str())
        .collect();
    assert_eq!(
        uris,
        [
            "library://catalog",
            "library://cover",
            "ui://library/reader"
        ]
    );
    let catalog = &description.resources[0];
    assert_eq!((catalog.size, catalog.priority), (Some(26), Some(0.5)));
    assert_eq!(catalog.audience, ["user", "assistant"]);
    assert_eq!(
        catalog.last_modified.as_deref(),
        Some("2026-01-12T15:00:58Z")
    );
    let templates: Vec<_> = description
        .templates
        .iter()
        .map(|template| (&*template.uri, &*template.name))
        .collect();
    assert_eq!(
        templates,
        [
            ("library://books/{author}/{title}", "book"),
            ("library://misbehave/{how}", "misbehave"),
            ("ui://library/probe/{port}", "probe")
        ]
    );
}

#[test]
fn a_prompt_is_filled_in() {
    let review = get("review", &[("author", "balzac"), ("style", "short")]).unwrap();
    assert_eq!(review.description.as_deref(), Some("About review"));
    let messages = review
        .messages
        .iter()
        .map(|message| (message.role, &message.content.body))
        .collect::<Vec<_>>();
    let [asked, answered] = ["Review balzac in a short style.", "Which book?"]
        .map(|text| ContentBody::Text(text.into()));
    assert_eq!(messages, [("user", &asked), ("assistant", &answered)]);
    let cover = get("cover", &[]).unwrap();
    assert!(matches!(
        cover.messages[0].content.body,
        ContentBody::Image(_)
    ));
    assert!(matches!(
        cover.messages[1].content.body,
        ContentBody::Resource(_)
    ));
}

#[test]
fn a_prompt_that_misbehaves_fails() {
    let misbehave = |how| get("misbehave", &[("how", how)]).unwrap_err();
    assert_eq!(
        misbehave("fail"),
        CallError::Failed("The library is closed.".into())
    );
    assert_eq!(
        misbehave("refuse"),
        CallError::InvalidArguments("Nobody misbehaves like that.".into())
    );
    assert_eq!(
        misbehave("neither"),
        CallError::InvalidOutput("messages[0] is text without `text`".into())
    );
    assert_eq!(
        misbehave("many"),
        CallError::limit(Limit::OutputItems(hasty().output_items))
    );
    assert_eq!(
        misbehave("huge"),
        CallError::limit(Limit::Memory(hasty().memory))
    );
    assert_eq!(
        misbehave("loop"),
        CallError::limit(Limit::Fuel(hasty().fuel))
    );
    assert!(matches!(misbehave("panic"), CallError::Trap { .. }));
}

#[test]
fn a_resource_is_read_by_its_uri() {
    let [catalog] = read("library://catalog").unwrap().try_into().unwrap();
    let ResourceItem { resource, meta } = catalog;
    assert_eq!(resource.uri, "library://catalog");
    assert_eq!(resource.mime_type.as_deref(), Some("text/plain"));
    assert_eq!(
        resource.content,
        ResourceContent::Text("austen\nbalzac\nborges\nwoolf".into())
    );
    assert_eq!(meta["library.example/authors"], 4);
    let [cover] = read("library://cover").unwrap().try_into().unwrap();
    assert_eq!(
        cover.resource.content,
        ResourceContent::Blob(b"\x89PNG\r\n\x1a\n".as_slice().into())
    );
    let book = read("library://books/woolf/orlando").unwrap();
    let uris: Vec<_> = book.iter().map(|item| item.resource.uri.as_str()).collect();
    assert_eq!(
        uris,
        [
            "library://books/woolf/orlando",
            "library://books/woolf/orlando/notes"
        ]
    );
    assert_eq!(
        read("library://books/nobody/nothing").unwrap(),
        [],
        "there is no such resource"
    );
}

#[test]
fn a_resource_that_misbehaves_fails() {
    let misbehave = |how| read(&format!("library://misbehave/{how}")).unwrap_err();
    let broken = |how| match misbehave(how) {
        CallError::InvalidOutput(what) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        misbehave("fail"),
        CallError::Failed("The library is closed.".into())
    );
    assert_eq!(broken("both"), "contents[0] has both `text` and `data`");
    assert_eq!(
        broken("neither"),
        "contents[0] has neither `text` nor `data`"
    );
    assert_eq!(broken("meta"), "contents[0].meta is not a JSON object");
    assert!(
        broken("mime").starts_with("contents[0] has an invalid MIME type: \"text/plain"),
        "{}",
        broken("mime")
    );
    assert!(
        broken("uri").starts_with("contents[0] has an invalid URI"),
        "{}",
        broken("uri")
    );
    let elsewhere = "contents[0] has the URI \"library://catalog\", which is neither the one that was read nor one below it";
    assert_eq!(broken("elsewhere"), elsewhere);
    assert_eq!(
        misbehave("many"),
        CallError::limit(Limit::OutputItems(hasty().output_items))
    );
    assert_eq!(
        misbehave("huge"),
        CallError::limit(Limit::Memory(hasty().memory))
    );
    assert_eq!(
        misbehave("large"),
        CallError::limit(Limit::Output(hasty().output))
    );
    let narrow = Limits {
        transfer: ByteSize::mib(1),
        ..hasty()
    };
    let transfer = CallError::limit(Limit::Transfer(narrow.transfer));
    assert_eq!(
        read_within(narrow, "library://misbehave/large").unwrap_err(),
        transfer
    );
    assert_eq!(
        misbehave("loop"),
        CallError::limit(Limit::Fuel(hasty().fuel))
    );
    let short = Limits {
        timeout: Duration::from_millis(100),
        fuel: u64::MAX,
        ..hasty()
    };
    let deadline_error = CallError::limit(Limit::Deadline(short.timeout));
    assert_eq!(
        read_within(short, "library://misbehave/loop").unwrap_err(),
        deadline_error
    );
}

#[test]
fn arguments_are_completed() {
    let found = |values: &[&str], total, has_more| CompletionResult {
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        total,
        has_more,
    };
    assert_eq!(
        complete(prompt("review"), "author", "b"),
        Ok(found(&["balzac", "borges"], None, false))
    );
    assert_eq!(
        complete(book(), "title", "or"),
        Ok(found(&["or of woolf"], Some(1), false))
    );
    let many = complete(prompt("review"), "style", "").unwrap();
    assert_eq!(
        (many.values.len(), many.total, many.has_more),
        (CompletionResult::MAX_VALUES, Some(1_000), true)
    );
    let wrong_total = complete(book(), "how", "").unwrap();
    assert_eq!(
        (
            wrong_total.values.len(),
            wrong_total.total,
            wrong_total.has_more
        ),
        (13, None, false)
    );
    // A value that is too long is omitted, and the rest is cleaned.
    assert_eq!(
        complete(prompt("misbehave"), "how", "huge"),
        Ok(found(&["red"], None, true))
    );
    let refused = complete(prompt("review"), "nothing", "").unwrap_err();
    assert_eq!(
        refused,
        CallError::InvalidArguments("review has no argument nothing.".into())
    );
}

#[test]
fn requests_that_a_plugin_does_not_offer_fail() {
    let tool = LIBRARY.call("review", &serde_json::json!({})).unwrap_err();
    assert_eq!(
        tool,
        CallError::Failed("There is no tool review: the plugin offers no tools.".into())
    );
    let older = TrialComponent::new(&sandbox(), TinyComponent::new(&["a"]).build()).unwrap();
    let prompts_only =
        TrialComponent::new(&sandbox(), TinyCoreModule::new().prompt("a", "").build()).unwrap();
    let command =
        wat::parse_str(r#"(module (memory (export "memory") 1) (func (export "_start")))"#);
    let command = TrialComponent::new(&sandbox(), command.unwrap()).unwrap();
    let request = CompletionRequest {
        reference: prompt("a"),
        argument: "b".into(),
        value: String::new(),
        context: BTreeMap::new(),
    };
    for plugin in [older, command] {
        let none = BTreeMap::new();
        let prompt = plugin
            .request(PluginRequest::Prompt {
                name: "p",
                arguments: &none,
            })
            .unwrap_err();
        assert_eq!(
            prompt,
            CallError::Failed("There is no prompt p: the plugin offers no prompts.".into())
        );
        let values = plugin
            .request(PluginRequest::Completion(&request))
            .unwrap_err();
        assert!(
            matches!(values, CallError::Failed(what) if what.starts_with("There are no values for b: "))
        );
    }
    let resource = prompts_only
        .request(PluginRequest::Resource { uri: "a://b" })
        .unwrap_err();
    assert_eq!(
        resource,
        CallError::Failed("There is no resource a://b: the plugin offers no resources.".into())
    );
}

#[test]
fn the_observer_is_notified_of_changed_resources() {
    #[derive(Default)]
    struct Updates(Mutex<Vec<String>>);

    impl CallObserver for Updates {
        fn log(&self, _level: LogLevel, _message: &str) {}

        fn progress(&self, _progress: ProgressUpdate) {}

        fn resource_updated(&self, uri: &str) {
            self.0.lock().push(uri.to_owned());
        }

        fn is_cancelled(&self) -> bool {
            false
        }
    }

    let updates = Arc::new(Updates::default());
    let uri = "library://books/austen/emma";
    LIBRARY
        .request_in(
            &PluginContext::default(),
            Arc::<Updates>::clone(&updates),
            PluginRequest::Resource { uri },
        )
        .result
        .unwrap();
    assert_eq!(*updates.0.lock(), [uri]);
}

#[test]
fn some_interfaces_are_enough() {
    let load =
        |offering: &TinyCoreModule| TrialComponent::new(&sandbox(), offering.build()).unwrap();
    let prompts = load(&TinyCoreModule::new().prompt("a", "An a."));
    assert_eq!(prompts.form(), "it exports toolbay:plugin/prompts@0.2.0");
    assert_eq!(
        prompts.description.prompts[0].description.as_deref(),
        Some("An a.")
    );
    assert!(!prompts.description.completes);
    let resources = load(
        &TinyCoreModule::new()
            .resource("a://b", "b")
            .template("a://{c}", "c")
            .with_completion(),
    );
    assert_eq!(
        resources.form(),
        "it exports toolbay:plugin/{resources, completion}@0.2.0"
    );
    assert_eq!(
        (
            &*resources.description.resources[0].uri,
            &*resources.description.templates[0].uri
        ),
        ("a://b", "a://{c}")
    );
    assert_eq!(
        resources.request(PluginRequest::Resource { uri: "a://b" }),
        Ok(None)
    );
    let alone = TrialComponent::new(&sandbox(), TinyCoreModule::new().with_completion().build())
        .err()
        .unwrap();
    assert!(
        alone
            .to_string()
            .contains("but nothing that has arguments to complete"),
        "{alone}"
    );
}

#[test]
fn types_that_differ_are_refused_when_a_plugin_is_loaded() {
    let differs = |wit: &str, exports: &str| {
        let component = toolbay_testkit::wit::build_component(wit, exports);
        TrialComponent::new(&sandbox(), component)
            .err()
            .map(|why| why.to_string())
            .unwrap()
    };
    let wit =
        "package toolbay:plugin@0.2.0; interface prompts { list-prompts: func() -> list<string>; }
        world w { export prompts; }";
    let list =
        r#"(func (export "toolbay:plugin/prompts@0.2.0#list-prompts") (result i32) (i32.const 0))"#;
    let why = differs(wit, list);
    assert!(
        why.starts_with("exports toolbay:plugin/prompts@0.2.0, but its types differ from those of that version: ")
            && why.contains("list-prompts"),
        "{why}"
    );
    let older = differs(
        &wit.replace("0.2.0", "0.1.0"),
        &list.replace("0.2.0", "0.1.0"),
    );
    assert!(
        older.ends_with("that version has tools only; build it against 0.2.0"),
        "{older}"
    );
    let newer = differs(
        &wit.replace("0.2.0", "0.3.0"),
        &list.replace("0.2.0", "0.3.0"),
    );
    assert!(newer.contains("use Toolbay 0.3 or newer"), "{newer}");
    let missing = differs(
        "package toolbay:plugin@0.2.0; interface resources { nothing: func(); } world w { export resources; }",
        r#"(func (export "toolbay:plugin/resources@0.2.0#nothing"))"#,
    );
    assert!(
        missing.ends_with("there is no function list-resources"),
        "{missing}"
    );
}

#[test]
fn lists_of_any_size_are_requested_within_limits() {
    let list = |offering: &TinyCoreModule, limits: &Limits| {
        TrialComponent::with_limits(&sandbox(), offering.build(), limits)
            .unwrap()
            .map(|loaded| loaded.description)
    };
    // The number of entries is limited elsewhere. Here, the listing must only end soon.
    let many = (0..100_000).fold(TinyCoreModule::new(), |offering, n| {
        offering.prompt(&format!("p{n}"), "")
    });
    assert_eq!(
        list(&many, &Limits::DEFAULT).unwrap().prompts.len(),
        100_000
    );
    let long = TinyCoreModule::new().prompt("a", &"x".repeat(14 << 20));
    assert_eq!(
        list(&long, &Limits::DEFAULT).unwrap().prompts[0]
            .description
            .as_ref()
            .unwrap()
            .len(),
        14 << 20
    );
    // All lists together share the transfer limit of one call.
    let tight = Limits {
        transfer: ByteSize::mib(20),
        ..Limits::DEFAULT
    };
    assert!(list(&long, &tight).is_ok());
    let both = (0..7).fold(long, |offering, _| {
        offering.resource("a://b", &"y".repeat(1 << 20))
    });
    assert_eq!(
        list(&both, &tight).unwrap_err(),
        CallError::limit(Limit::Transfer(tight.transfer))
    );
    let wide = Limits {
        transfer: ByteSize::mib(32),
        ..Limits::DEFAULT
    };
    assert!(list(&both, &wide).is_ok());
    let endless = TinyCoreModule::new()
        .template("a://{b}", "b")
        .before_function("list-resource-templates", "(loop $l (br $l))");
    assert_eq!(
        list(&endless, &hasty()).unwrap_err(),
        CallError::limit(Limit::Fuel(hasty().fuel))
    );
}

#[test]
fn listed_uris_are_passed_on_unchanged() {
    let bomb = "{+a}".repeat(10_000);
    let uris = [
        "",
        "no uri",
        "file:///etc/../passwd",
        "a://\u{1b}[2J",
        "a://{",
        "a://{a}{a}{a}",
        bomb.as_str(),
    ];
    let offering = uris.iter().fold(TinyCoreModule::new(), |offering, uri| {
        offering.resource(uri, "a\u{202e}").template(uri, "")
    });
    let description = TrialComponent::new(&sandbox(), offering.build())
        .unwrap()
        .description;
    for listed in [description.resources, description.templates] {
        assert_eq!(
            listed
                .iter()
                .map(|listed| listed.uri.as_str())
                .collect::<Vec<_>>(),
            uris
        );
        assert!(
            listed
                .iter()
                .all(|listed| listed.name == "a" || listed.name.is_empty())
        );
    }
}

fn find(names: &[&str]) -> Result<Option<ExportedContract>, String> {
    ExportedContract::find(names.iter().copied()).map_err(|error| error.to_string())
}

#[test]
fn the_contract_is_found_among_exports() {
    let version = |names: &[&str]| {
        find(names)
            .unwrap()
            .map(|exported| exported.version.to_string())
    };
    assert_eq!(
        version(&["init", "toolbay:plugin/tools@0.1.0"]).as_deref(),
        Some("0.1.0")
    );
    assert_eq!(
        version(&["toolbay:plugin/toolshed@0.1.0", "toolbay:plugin/tools"]),
        None
    );
    for one in ["tools", "prompts", "resources"] {
        let name = format!("toolbay:plugin/{one}@0.2.0");
        let found = find(&["wasi:cli/run@0.2.0", &name]).unwrap().unwrap();
        assert_eq!(found.names.into_values().collect::<Vec<_>>(), [name]);
    }
}

#[test]
fn interfaces_of_several_versions_are_refused() {
    let several =
        find(&["toolbay:plugin/prompts@0.2.0", "toolbay:plugin/tools@0.1.0"]).unwrap_err();
    assert_eq!(
        several,
        "exports toolbay:plugin/prompts@0.2.0 and toolbay:plugin/tools@0.1.0: all of its interfaces must be of the \
         same version of the contract; build it against one"
    );
}

#[test]
fn completion_without_other_interfaces_offers_nothing() {
    let alone = find(&["toolbay:plugin/completion@0.2.0"]).unwrap_err();
    assert_eq!(
        alone,
        "exports toolbay:plugin/completion@0.2.0, but nothing that has arguments to complete; export prompts or \
         resources, too"
    );
    assert!(
        find(&[
            "toolbay:plugin/completion@0.2.0",
            "toolbay:plugin/prompts@0.2.0"
        ])
        .unwrap()
        .is_some()
    );
}

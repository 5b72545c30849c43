//! Commands for plugin authors: `toolbay new`, `toolbay dev`, `toolbay check`.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::support::wit::build_component;
use crate::support::{CommandOutput, DEADLINE, Folder, TinyComponent, ToolbayCommand, hostile};

fn toolbay(folder: &Folder, args: &[&str]) -> CommandOutput {
    ToolbayCommand::new(folder).args(args).run()
}

/// Creates a project whose build is a copy, because these tests are not about compilers.
fn project(folder: &Folder, more: &str) -> String {
    let at = folder.sibling_path("project");
    std::fs::create_dir(&at).unwrap();
    std::fs::write(
        at.join("source"),
        TinyComponent::new(&["hello"]).with_text("first").build(),
    )
    .unwrap();
    let text = format!(
        "name = \"mine\"\nlanguage = \"none\"\nsetup = [\"echo set up\"]\nbuild = [\"cp source made.wasm\"]\n\
         output = \"made.wasm\"\nwatch = [\"source\"]\n{more}\n[example]\ntool = \"hello\"\n"
    );
    std::fs::write(at.join("plugin.toml"), text).unwrap();
    at.to_str().unwrap().to_owned()
}

#[test]
fn new_creates_a_project_and_prints_how_to_build_it() {
    let folder = Folder::new();
    let at = folder.sibling_path("my-weather");
    let made = toolbay(
        &folder,
        &["new", at.to_str().unwrap(), "--language", "python"],
    );
    assert_eq!(made.code, 0, "{made}");
    assert!(
        made.stdout.contains("    python3 -m venv .venv\n"),
        "{made}"
    );
    assert!(
        made.stdout.contains("    cp my-weather.wasm PLUGINS/\n"),
        "{made}"
    );
    assert!(
        std::fs::read_to_string(at.join("plugin.toml"))
            .unwrap()
            .contains("name = \"my-weather\"")
    );
    assert!(at.join("toolbay/wit/plugin.wit").exists() && at.join(".gitignore").exists());
    let again = toolbay(&folder, &["new", at.to_str().unwrap(), "--language", "go"]);
    assert_eq!(again.code, 1);
    assert!(
        again.stderr.contains("my-weather already exists"),
        "{again}"
    );
    let bad = toolbay(&folder, &["new", "My Weather", "--language", "go"]);
    assert!(
        bad.stderr
            .contains("\"My Weather\" is not a valid plugin name: use lower-case words"),
        "{bad}"
    );
}

#[test]
fn dev_builds_copies_and_calls() {
    let folder = Folder::new();
    let at = project(&folder, "");
    let done = toolbay(&folder, &["dev", &at, "--once"]);
    assert_eq!(done.code, 0, "{done}");
    assert!(
        done.stdout.starts_with("$ echo set up\n")
            && done.stdout.contains("$ cp source made.wasm\n"),
        "{done}"
    );
    assert!(
        done.stdout.contains("tools: hello\n> hello {}\nfirst\n"),
        "{done}"
    );
    assert!(folder.plugin_path("mine.wasm").exists());
}

#[test]
fn dev_asks_on_a_terminal_before_a_call_that_requires_approval() {
    let folder = Folder::new();
    let at = project(&folder, "");
    folder.put(
        "mine.toml",
        "prefix = \"acme\"\nrequire_approval = \"always\"",
    );
    // Piped input does not count as a person.
    let nobody = ToolbayCommand::new(&folder)
        .args(["dev", &at, "--once"])
        .run_with("y\n");
    assert!(
        nobody.code == 1 && !nobody.stdout.contains("first"),
        "{nobody}"
    );
    let why = "toolbay: the grant of \"mine\" requires a person to allow calls of \"acme_hello\" (require_approval): run \
               `toolbay dev` on a terminal, or try the tool with `toolbay call --yes`\n";
    assert_eq!(nobody.stderr, why);
    let on_a_terminal = |typed: &str| {
        let script = "exec script --quiet --return --command \"$*\" /dev/null";
        ToolbayCommand::new(&folder)
            .args(["dev", &at, "--once"])
            .with_shell_wrapper(script)
            .run_with(typed)
    };
    let asked = on_a_terminal("y\n");
    assert!(asked.code == 0 && asked.stdout.contains("first"), "{asked}");
    assert!(
        asked.stdout.contains("    tool    acme_hello") && asked.stdout.contains("Type y"),
        "{asked}"
    );
    for typed in ["n\n", ""] {
        let refused = on_a_terminal(typed);
        assert!(
            refused.code == 1 && refused.stdout.contains("toolbay: not called"),
            "{refused}"
        );
        assert!(!refused.stdout.contains("first"), "{refused}");
    }
}

#[test]
fn dev_reports_missing_requirements_and_failed_builds() {
    let folder = Folder::new();
    let lacking =
        "[[requires]]\ncommand = \"no-such-compiler --version\"\ninstall = \"apt-get install it\"";
    let at = project(&folder, lacking);
    let lacks = toolbay(&folder, &["dev", &at, "--once"]);
    assert_eq!(lacks.code, 1);
    assert!(
        lacks.stderr.contains(
            "no-such-compiler is missing (`no-such-compiler --version` failed): apt-get install it"
        ),
        "{lacks}"
    );
    std::fs::write(
        format!("{at}/plugin.toml"),
        "name = \"mine\"\nlanguage = \"none\"\nbuild = [\"exit 3\"]\noutput = \"x\"\nwatch = []",
    )
    .unwrap();
    let failed = toolbay(&folder, &["dev", &at, "--once"]);
    assert!(
        failed.code == 1
            && failed
                .stderr
                .contains("`exit 3` failed; the previous version"),
        "{failed}"
    );
    let nothing = toolbay(
        &folder,
        &[
            "dev",
            folder.sibling_path("nowhere").to_str().unwrap(),
            "--once",
        ],
    );
    assert!(
        nothing.stderr.contains("has no plugin.toml") && nothing.stderr.contains("toolbay new"),
        "{nothing}"
    );
}

#[test]
fn check_of_a_project_reports_missing_parts_and_describes_the_build() {
    let folder = Folder::new();
    let at = project(&folder, "");
    let unbuilt = toolbay(&folder, &["check", &at]);
    assert_eq!(unbuilt.code, 1);
    let said = "mine has not been built; run these in its folder:\n    echo set up\n    cp source made.wasm\n";
    assert!(unbuilt.stderr.contains(said), "{unbuilt}");
    std::fs::copy(format!("{at}/source"), format!("{at}/made.wasm")).unwrap();
    let built = toolbay(&folder, &["check", &at]);
    assert!(
        built.code == 0 && built.stdout.starts_with("made.wasm  "),
        "{built}"
    );
    let text = std::fs::read_to_string(format!("{at}/plugin.toml")).unwrap();
    let old = "[[requires]]\ncommand = \"echo v1.9.1\"\nversion = \"1.24\"\ninstall = \"apt-get install it\"";
    std::fs::write(format!("{at}/plugin.toml"), format!("{text}{old}")).unwrap();
    let lacks = toolbay(&folder, &["check", &at]);
    assert_eq!(lacks.code, 1);
    assert!(
        lacks
            .stderr
            .contains("echo is 1.9.1, but 1.24 or newer is needed: apt-get install it"),
        "{lacks}"
    );
}

#[test]
fn dev_builds_again_after_a_change() {
    let folder = Folder::new();
    let at = project(&folder, "");
    let (mut command, _folder) = ToolbayCommand::new(&folder).args(["dev", &at]).into_parts();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stdout = child.stdout.take().unwrap();
    let (tx, rx) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if tx.send(line).is_err() {
                return;
            }
        }
    });
    let wait_for = |wanted: &str| while rx.recv_timeout(DEADLINE).unwrap() != wanted {};
    wait_for("first");
    wait_for("Waiting for changes. Press Ctrl-C to stop.");
    std::fs::write(
        format!("{at}/source"),
        TinyComponent::new(&["hello"]).with_text("second").build(),
    )
    .unwrap();
    wait_for("second");
    // The example's tool is gone: that is reported, and the next build is tried as well.
    std::fs::write(
        format!("{at}/source"),
        TinyComponent::new(&["other"]).build(),
    )
    .unwrap();
    wait_for("tools: other");
    wait_for("Waiting for changes. Press Ctrl-C to stop.");
    std::fs::write(
        format!("{at}/source"),
        TinyComponent::new(&["hello"]).with_text("third").build(),
    )
    .unwrap();
    wait_for("third");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn check_describes_each_form() {
    let folder = Folder::new();
    let check = |name: &str, file: Vec<u8>| {
        let path = folder.sibling_path(name);
        std::fs::write(&path, file).unwrap();
        toolbay(&folder, &["check", path.to_str().unwrap()])
    };
    let sdk = check("sdk.wasm", hostile());
    assert_eq!(sdk.code, 0, "{sdk}");
    assert!(
        sdk.stdout
            .contains("    a component; it exports toolbay:plugin/{tools, prompts, resources, completion}@0.2.0\n"),
        "{sdk}"
    );
    assert!(
        sdk.stdout
            .contains("    uses files (only in folders listed in [[permissions.mounts]])\n"),
        "{sdk}"
    );
    assert!(
        sdk.stdout
            .contains(" of memory when a call begins (limits.memory: 128.0 MiB)\n"),
        "{sdk}"
    );
    let grant = sdk
        .stdout
        .split("Grant, to copy into sdk.toml:\n")
        .nth(1)
        .unwrap()
        .split("\n\n")
        .next()
        .unwrap();
    assert!(
        grant.contains("    # tcp = [\"db.example.com:5432\"]\n") && !grant.contains("http"),
        "{grant}"
    );
    // The grant is valid.
    folder.put("sdk.wasm", hostile());
    folder.put("sdk.toml", grant);
    let listed = toolbay(&folder, &["list"]);
    assert!(listed.stdout.contains("sdk  ready"), "{listed}");
    let said = toolbay(
        &folder,
        &[
            "check",
            folder.sibling_path("sdk.wasm").to_str().unwrap(),
            "--json",
        ],
    );
    let said: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert!(
        said["memory"].as_u64().unwrap() >= 64 << 10 && said["grant"].is_string(),
        "{said}"
    );
    let wit = "package a:b; world w { export add: func(a: u8, b: u8) -> u16; }";
    let add = r#"(func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))"#;
    let plain = check("plain.wasm", build_component(wit, add));
    assert!(
        plain
            .stdout
            .contains("    a component; it exports plain functions; each is a tool\n"),
        "{plain}"
    );
    assert!(
        plain.stdout.contains("    made with ") && plain.stdout.contains("wit-component"),
        "{plain}"
    );
    assert!(
        plain.stdout.contains(
            "Imports:\n    none: it needs nothing, and can use only its own memory\n\nGrant: it needs none.\n"
        ),
        "{plain}"
    );
    assert!(
        plain.stdout.contains(
            "        add: func(a: u8, b: u8) -> u16\n        input   {\"type\":\"object\""
        ),
        "{plain}"
    );
    assert!(
        plain
            .stdout
            .contains("export add: func(a: u8, b: u8) -> u16;"),
        "{plain}"
    );
    // The size of the WIT file next to the component is limited as in the plugin folder.
    std::fs::write(folder.sibling_path("plain.wit"), vec![b' '; (1 << 20) + 1]).unwrap();
    let large = toolbay(
        &folder,
        &["check", folder.sibling_path("plain.wasm").to_str().unwrap()],
    );
    assert!(
        large.code == 1
            && large
                .stderr
                .contains("plain.wit: the file is larger than 1.0 MiB"),
        "{large}"
    );
    let module = check(
        "module.wasm",
        TinyComponent::new(&["hello"]).build_core_module(),
    );
    assert!(
        module
            .stdout
            .contains("a core module that exports the functions of toolbay:plugin"),
        "{module}"
    );
    let bad = check("bad.wasm", b"hello, world".to_vec());
    assert!(
        bad.code == 1
            && bad
                .stderr
                .contains("is not a valid plugin: not a WebAssembly file"),
        "{bad}"
    );
    std::fs::remove_dir_all(folder.plugin_folder()).unwrap();
    let alone = check("alone.wasm", TinyComponent::new(&["hello"]).build());
    assert_eq!(alone.code, 0, "no plugin folder is needed: {alone}");
    let gone = toolbay(&folder, &["check", "gone.wasm"]);
    assert!(
        gone.code == 1 && gone.stderr.contains("gone.wasm does not exist"),
        "{gone}"
    );
}

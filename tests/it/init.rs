//! The first steps of new users: `toolbay init`, and completions for their shell.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use toolbay_testkit as kit;

use crate::support::{CommandOutput, Folder, TinyComponent, ToolbayCommand};

fn toolbay(folder: &Folder, args: &[&str]) -> CommandOutput {
    ToolbayCommand::new(folder).args(args).run()
}

/// Creates a folder with samples, each with a tool of the same name.
fn samples(folder: &Folder, at: &str, names: &[&str]) -> PathBuf {
    let at = folder.sibling_path(at);
    fs::create_dir_all(&at).unwrap();
    for name in names {
        fs::write(
            at.join(name).with_extension("wasm"),
            TinyComponent::new(&[name]).with_text("here").build(),
        )
        .unwrap();
    }
    at
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_new_folder_can_be_served_at_once() {
    let folder = Folder::new();
    let from = samples(&folder, "samples", &["calculator", "time"]);
    let made = toolbay(&folder, &["init", "made", "--from", from.to_str().unwrap()]);
    insta::assert_snapshot!(made, @r#"
    exit code 0
    --- standard output
    Wrote to made:

        toolbay.toml
        plugins/calculator.wasm
        plugins/time.wasm

    Next:

        cd made
        toolbay list                                      # the plugins and their tools
        toolbay call calculate_sum '{"a": 2, "b": 3}'     # calls one
        toolbay install CLIENT                            # connects a client; --help lists them
    --- standard error
    "#);
    let config = folder.sibling_path("made/toolbay.toml");
    let config = config.to_str().unwrap();
    let called = toolbay(&folder, &["call", "time", "--config", config]);
    assert_eq!(
        (called.code, called.stdout.as_str()),
        (0, "here\n"),
        "{called}"
    );
    let listed = toolbay(&folder, &["list", "--config", config]);
    assert!(
        listed.stdout.contains("calculator") && !listed.stdout.contains('!'),
        "{listed}"
    );
    // The files have ordinary permissions, and no temporary file remains.
    let permissions = |name: &str| {
        std::os::unix::fs::PermissionsExt::mode(
            &fs::metadata(folder.sibling_path("made").join(name))
                .unwrap()
                .permissions(),
        )
    };
    assert_eq!(
        (
            permissions("toolbay.toml") & 0o777,
            permissions("plugins/time.wasm") & 0o777
        ),
        (0o644, 0o644)
    );
    assert_eq!(
        names(&folder.sibling_path("made")),
        ["plugins", "toolbay.toml"]
    );
    assert_eq!(
        names(&folder.sibling_path("made/plugins")),
        ["calculator.wasm", "time.wasm"]
    );
}

#[test]
fn existing_files_are_not_overwritten_and_are_reported() {
    let folder = Folder::new();
    let from = samples(&folder, "samples", &["calculator", "time"]);
    folder.write_config("page_size = 7\n");
    folder.overwrite("time.wasm", "mine");
    let made = toolbay(&folder, &["init", "--from", from.to_str().unwrap()]);
    insta::assert_snapshot!(made, @r#"
    exit code 0
    --- standard output
    Wrote to .:

        plugins/calculator.wasm

    Already there, and left as it is:

        toolbay.toml
        plugins/time.wasm

    Next:

        toolbay list                                      # the plugins and their tools
        toolbay call calculate_sum '{"a": 2, "b": 3}'     # calls one
        toolbay install CLIENT                            # connects a client; --help lists them
    --- standard error
    "#);
    assert_eq!(
        fs::read_to_string(folder.sibling_path("toolbay.toml")).unwrap(),
        "page_size = 7\n"
    );
    assert_eq!(
        fs::read_to_string(folder.plugin_path("time.wasm")).unwrap(),
        "mine"
    );
    let again = toolbay(&folder, &["init", "--from", from.to_str().unwrap()]);
    assert!(
        again.code == 0 && !again.stdout.contains("Wrote"),
        "{again}"
    );
}

#[test]
fn the_samples_of_a_package_are_found_however_the_program_is_called() {
    let folder = Folder::new();
    let package = folder.sibling_path("package");
    samples(
        &folder,
        "package/share/toolbay/plugins",
        &["calculator", "qr"],
    );
    fs::create_dir(package.join("bin")).unwrap();
    let program = package.join("bin/toolbay");
    if fs::hard_link(folder.program().path(), &program).is_err() {
        fs::copy(folder.program().path(), &program).unwrap();
    }
    let link = folder.sibling_path("link");
    symlink("package/bin/toolbay", &link).unwrap();
    for (at, program) in [("one", program), ("two", link)] {
        let user = kit::TestFolder::new(&kit::ServerProgram::new(program));
        let made = ToolbayCommand::new(&user)
            .args(["init", at, "--samples", "qr"])
            .run();
        assert_eq!(made.code, 0, "{made}");
        assert_eq!(names(&user.sibling_path(at).join("plugins")), ["qr.wasm"]);
    }
}

#[test]
fn a_program_without_samples_says_where_to_get_them() {
    let folder = Folder::new();
    let made = toolbay(&folder, &["init", "made"]);
    assert!(
        made.code == 0
            && made
                .stdout
                .contains("There are no sample plugins next to this program."),
        "{made}"
    );
    assert_eq!(
        names(&folder.sibling_path("made/plugins")),
        Vec::<String>::new()
    );
    let none = toolbay(&folder, &["init", "other", "--samples", "none"]);
    assert!(
        none.code == 0 && !none.stdout.contains("There are no"),
        "{none}"
    );
}

#[test]
fn init_creates_nothing_if_a_sample_or_folder_does_not_exist() {
    let folder = Folder::new();
    let from = samples(&folder, "samples", &["calculator"]);
    let from = from.to_str().unwrap();
    let cases: [(&[&str], &str); 4] = [
        (
            &["--samples", "calculater", "--from", from],
            "did you mean \"calculator\"?",
        ),
        (
            &["--samples", "qr"],
            "--from names the folder that has them",
        ),
        (&["--from", "nowhere"], "failed to read nowhere"),
        (&["--from", "plugins"], "plugins contains no .wasm file"),
    ];
    for (args, why) in cases {
        let args: Vec<&str> = ["init", "made"].iter().chain(args).copied().collect();
        let refused = toolbay(&folder, &args);
        assert!(
            refused.code == 1 && refused.stderr.contains(why) && refused.stdout.is_empty(),
            "{refused}"
        );
        assert!(!folder.sibling_path("made").exists(), "{refused}");
    }
    fs::create_dir(folder.sibling_path("made")).unwrap();
    fs::write(folder.sibling_path("made/plugins"), "a file").unwrap();
    let refused = toolbay(&folder, &["init", "made", "--from", from]);
    assert!(
        refused.code == 1 && refused.stderr.contains("failed to create made/plugins"),
        "{refused}"
    );
    assert_eq!(names(&folder.sibling_path("made")), ["plugins"]);
}

#[test]
fn completions_are_generated_for_each_shell() {
    let folder = Folder::new();
    let bash = toolbay(&folder, &["completions", "bash"]);
    assert!(
        bash.code == 0 && bash.stdout.contains("complete -F _toolbay"),
        "{bash}"
    );
    assert_eq!(toolbay(&folder, &["completions", "cmd"]).code, 2);
}

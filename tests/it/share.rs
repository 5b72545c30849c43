//! Plugins as one file: metadata, proposed grants, `toolbay pack` and `toolbay add`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::thread;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};
use toolbay_testkit::read_request;

use crate::support::{CommandOutput, Folder, TinyComponent, ToolbayCommand};

const METADATA: &str = r#"
version = "1.2.0"
summary = "Says hello"
authors = ["Ada <ada@example.com>"]
license = "MIT"
homepage = "https://example.com/mine"

[proposed_grant.permissions]
http = ["https://api.example.com"]
environment = ["LANG"]

[proposed_grant.secrets.key]
header = "Authorization"
origins = ["https://api.example.com"]

[proposed_grant.reasons]
http = "Gets greetings"
environment = "Greets in your language"
"secrets.key" = "The account at api.example.com"
"#;

fn toolbay(folder: &Folder, args: &[&str]) -> CommandOutput {
    ToolbayCommand::new(folder).args(args).run()
}

/// Runs the command on a terminal, with `typed` as the input of a person.
fn on_a_terminal(folder: &Folder, args: &[&str], typed: &str) -> CommandOutput {
    let script = "exec script --quiet --return --command \"$*\" /dev/null";
    ToolbayCommand::new(folder)
        .args(args)
        .with_shell_wrapper(script)
        .run_with(typed)
}

/// Creates a project whose build is a copy, and builds it.
fn project(folder: &Folder) -> String {
    let at = folder.sibling_path("project");
    fs::create_dir(&at).unwrap();
    let component = TinyComponent::new(&["hello"]).with_text("first").build();
    fs::write(at.join("source"), component).unwrap();
    let text = format!(
        "name = \"mine\"\nlanguage = \"none\"\nbuild = [\"cp source mine.wasm\"]\noutput = \"mine.wasm\"\nwatch = []\n{METADATA}"
    );
    fs::write(at.join("plugin.toml"), text).unwrap();
    fs::write(at.join("README.md"), "# Mine").unwrap();
    fs::write(at.join("LICENSE"), "MIT").unwrap();
    fs::write(at.join("mine.toml"), "permissions.environment = [\"HOME\"]").unwrap();
    fs::write(at.join(".env"), "SECRET=1").unwrap();
    fs::create_dir(at.join("mine.resources")).unwrap();
    fs::write(at.join("mine.resources/about.md"), "About").unwrap();
    fs::copy(at.join("source"), at.join("mine.wasm")).unwrap();
    at.to_str().unwrap().to_owned()
}

/// Packs the project, and returns the path of the archive.
fn pack(folder: &Folder, project: &str) -> String {
    let packed = toolbay(folder, &["pack", project, "--output", project]);
    assert_eq!(packed.code, 0, "{packed}");
    format!("{project}/mine-1.2.0.bay")
}

/// Returns paths and contents of everything in a folder.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            if path.symlink_metadata().unwrap().is_dir() {
                found.insert(format!("{name}/"), Vec::new());
                folders.push(path);
            } else {
                found.insert(name, fs::read(&path).unwrap_or_default());
            }
        }
    }
    found
}

fn plugins(folder: &Folder) -> std::path::PathBuf {
    folder.plugin_path("x").parent().unwrap().to_owned()
}

#[test]
fn the_build_writes_the_metadata_into_the_component() {
    let folder = Folder::new();
    let at = project(&folder);
    let text = fs::read_to_string(format!("{at}/plugin.toml")).unwrap();
    fs::write(
        format!("{at}/plugin.toml"),
        format!("{text}\n[example]\ntool = \"hello\"\n"),
    )
    .unwrap();
    let built = toolbay(&folder, &["dev", &at, "--once"]);
    assert_eq!(built.code, 0, "{built}");
    let wasm = folder.plugin_path("mine.wasm");
    let shown = toolbay(&folder, &["check", wasm.to_str().unwrap()]);
    for expected in [
        "    version   1.2.0\n",
        "    summary   Says hello\n",
        "    license   MIT\n",
        "Proposed grant, which nothing has allowed yet, to copy into mine.toml:\n",
        "    # Gets greetings\n    http = [\"https://api.example.com\"]\n",
        "    # [secrets.key]\n",
    ] {
        assert!(shown.stdout.contains(expected), "{expected}: {shown}");
    }
    // The build that runs again writes the same bytes.
    let first = fs::read(&wasm).unwrap();
    assert_eq!(toolbay(&folder, &["dev", &at, "--once"]).code, 0);
    assert_eq!(fs::read(&wasm).unwrap(), first);
    // A proposal without a grant file allows nothing.
    let listed = toolbay(&folder, &["list"]);
    assert!(!listed.stdout.contains("api.example.com"), "{listed}");
    folder.put(
        "mine.toml",
        "permissions.environment = [\"LANG\", \"HOME\"]",
    );
    let shown = toolbay(&folder, &["check", wasm.to_str().unwrap()]);
    for expected in [
        "! mine.toml allows more than the plugin proposes: environment = [\"HOME\"]\n",
        "! mine.toml lacks what the plugin proposes: http = [\"https://api.example.com\"]; secrets.key\n",
    ] {
        assert!(shown.stdout.contains(expected), "{expected}: {shown}");
    }
}

#[test]
fn a_project_with_invalid_metadata_is_refused_with_the_key() {
    let folder = Folder::new();
    let at = project(&folder);
    let original = fs::read_to_string(format!("{at}/plugin.toml")).unwrap();
    for (from, to, expected) in [
        ("1.2.0", "1", "plugin.toml: version: \"1\" is not a version"),
        ("\"MIT\"", "\"mine\"", "plugin.toml: license: \"mine\""),
        (
            "http = \"Gets greetings\"",
            "",
            "plugin.toml: proposed_grant: http has no reason",
        ),
        (
            "[\"https://api.example.com\"]\nenv",
            "[\"api\"]\nenv",
            "plugin.toml: proposed_grant: permissions.http",
        ),
        (
            "header = ",
            "environment = ",
            "plugin.toml: proposed_grant: secrets.key.environment: a proposal names a secret",
        ),
    ] {
        let text = original.replacen(from, to, 1);
        assert_ne!(text, original);
        fs::write(format!("{at}/plugin.toml"), text).unwrap();
        let packed = toolbay(&folder, &["pack", &at, "--output", &at]);
        assert!(
            packed.code == 1 && packed.stderr.contains(expected),
            "{expected}: {packed}"
        );
        let built = toolbay(&folder, &["dev", &at, "--once"]);
        assert!(
            built.code == 1 && built.stderr.contains(expected),
            "{expected}: {built}"
        );
    }
}

#[test]
fn pack_makes_the_same_archive_twice_without_grants_and_hidden_files() {
    let folder = Folder::new();
    let at = project(&folder);
    let first = toolbay(&folder, &["pack", &at, "--output", &at]);
    assert_eq!(first.code, 0, "{first}");
    let path = format!("{at}/mine-1.2.0.bay");
    let bytes = fs::read(&path).unwrap();
    // Other times and modes make no difference.
    fs::remove_file(&path).unwrap();
    fs::write(format!("{at}/README.md"), "# Mine").unwrap();
    let second = toolbay(&folder, &["pack", &at, "--output", &at]);
    assert_eq!(first.stdout, second.stdout);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert!(
        first.stdout.ends_with(
            &first
                .stdout
                .split_once("sha256 ")
                .map(|(_, digest)| format!("sha256 {digest}"))
                .unwrap()
        ) && first.stdout.contains(
            "    LICENSE\n    README.md\n    mine.resources/about.md\n    mine.wasm\nsha256 "
        ),
        "{first}"
    );
    let grant = format!("{at}/mine.toml");
    let refused = toolbay(&folder, &["pack", &format!("{at}/mine.wasm"), &grant]);
    assert!(
        refused.code == 1 && refused.stderr.contains("a grant is never packed"),
        "{refused}"
    );
}

#[test]
fn pack_publishes_no_file_from_outside_the_project() {
    let folder = Folder::new();
    let at = project(&folder);
    let outside = folder.sibling_path("README.md");
    fs::write(&outside, "private").unwrap();
    let refuse = |words: &str| {
        let packed = toolbay(&folder, &["pack", &at, "--output", &at]);
        assert!(
            packed.code == 1 && packed.stderr.contains(words),
            "{packed}"
        );
        assert!(!Path::new(&format!("{at}/mine-1.2.0.bay")).exists());
    };
    for name in ["NOTICE", "mine.wit", "mine.prompts", "mine.resources/more"] {
        let link = format!("{at}/{name}");
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        refuse("is a link");
        fs::remove_file(link).unwrap();
    }
    let settings = format!("{at}/plugin.toml");
    let text = fs::read_to_string(&settings).unwrap();
    for extra in ["../README.md", outside.to_str().unwrap()] {
        // Before the first table.
        fs::write(&settings, format!("extra_files = [{extra:?}]\n{text}")).unwrap();
        refuse("is not in the project folder");
    }
    fs::write(&settings, text).unwrap();
    pack(&folder, &at);
}

#[test]
fn add_applies_no_grant_whatever_the_options() {
    let folder = Folder::new();
    let at = project(&folder);
    let archive = pack(&folder, &at);
    // Without a terminal and without --yes, nothing is added.
    let nobody = ToolbayCommand::new(&folder)
        .args(["add", &archive])
        .run_with("y\ny\n");
    assert!(
        nobody.code == 1
            && nobody
                .stderr
                .contains("nothing was added: run the command on a terminal"),
        "{nobody}"
    );
    assert!(contents(&plugins(&folder)).is_empty());
    let added = ToolbayCommand::new(&folder)
        .args(["add", &archive, "--yes"])
        .run_with("y\ny\n");
    assert_eq!(added.code, 0, "{added}");
    for expected in [
        "    sha256    ",
        "    version   1.2.0\n",
        "    hello\n",
        "    # Gets greetings\n",
        "nothing is granted",
    ] {
        assert!(added.stdout.contains(expected), "{expected}: {added}");
    }
    let names: Vec<String> = contents(&plugins(&folder)).into_keys().collect();
    assert_eq!(
        names,
        [
            "mine.docs/",
            "mine.docs/LICENSE",
            "mine.docs/README.md",
            "mine.resources/",
            "mine.resources/about.md",
            "mine.wasm"
        ]
    );
    let called = toolbay(&folder, &["call", "hello"]);
    assert_eq!(
        (called.code, called.stdout.trim()),
        (0, "first"),
        "{called}"
    );
    let listed = toolbay(&folder, &["list"]);
    assert!(
        !listed.stdout.contains("api.example.com") && !listed.stdout.contains("refused"),
        "{listed}"
    );
}

#[test]
fn add_writes_the_proposed_grant_only_after_a_second_yes_on_a_terminal() {
    let folder = Folder::new();
    let at = project(&folder);
    let archive = pack(&folder, &at);
    let refused = on_a_terminal(&folder, &["add", &archive], "n\n");
    assert!(
        refused.code == 1 && refused.stdout.contains("nothing was added"),
        "{refused}"
    );
    assert!(contents(&plugins(&folder)).is_empty());
    let added = on_a_terminal(&folder, &["add", &archive, "--as", "one"], "y\nn\n");
    assert_eq!(added.code, 0, "{added}");
    assert!(folder.plugin_path("one.wasm").exists());
    assert!(!folder.plugin_path("one.toml").exists(), "{added}");
    let added = on_a_terminal(&folder, &["add", &archive, "--as", "two"], "y\ny\n");
    assert_eq!(added.code, 0, "{added}");
    let grant = fs::read_to_string(folder.plugin_path("two.toml")).unwrap();
    assert!(
        grant.contains("# Gets greetings\nhttp = [\"https://api.example.com\"]\n")
            && grant.contains("# [secrets.key]\n"),
        "{grant}"
    );
    let listed = toolbay(&folder, &["list"]);
    assert!(listed.stdout.contains("api.example.com"), "{listed}");
}

#[test]
fn an_existing_plugin_or_grant_is_replaced_only_on_request_and_its_grant_stays() {
    let folder = Folder::new();
    let at = project(&folder);
    let archive = pack(&folder, &at);
    // A grant without its plugin would apply to the new plugin.
    let grant = "permissions.environment = [\"HOME\"]";
    folder.put("mine.toml", grant);
    let before = contents(&plugins(&folder));
    let refused = toolbay(&folder, &["add", &archive, "--yes"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("Use --replace"),
        "{refused}"
    );
    assert_eq!(contents(&plugins(&folder)), before);
    let added = toolbay(&folder, &["add", &archive, "--yes", "--replace"]);
    assert_eq!(added.code, 0, "{added}");
    for expected in [
        "mine.toml exists, stays as it is, and applies to this plugin:\n    environment variables: HOME\n",
        "! mine.toml allows more than the plugin proposes: environment = [\"HOME\"]\n",
        "mine.toml was not changed",
    ] {
        assert!(added.stdout.contains(expected), "{expected}: {added}");
    }
    assert_eq!(
        fs::read_to_string(folder.plugin_path("mine.toml")).unwrap(),
        grant
    );
    let again = toolbay(&folder, &["add", &archive, "--yes", "--replace"]);
    assert!(
        again.code == 0 && again.stdout.contains("Replaces mine.wasm: 1.2.0 (sha256 "),
        "{again}"
    );
}

#[test]
fn a_bare_component_is_added_under_its_name() {
    let folder = Folder::new();
    let file = folder.sibling_path("hello.wasm");
    fs::write(&file, TinyComponent::new(&["hello"]).build()).unwrap();
    let added = toolbay(&folder, &["add", file.to_str().unwrap(), "--yes"]);
    assert_eq!(added.code, 0, "{added}");
    assert!(folder.plugin_path("hello.wasm").exists());
    let reserved = toolbay(
        &folder,
        &["add", file.to_str().unwrap(), "--yes", "--as", "toolbay"],
    );
    assert!(
        reserved.code == 1 && reserved.stderr.contains("cannot be named"),
        "{reserved}"
    );
    fs::write(&file, b"\0asm\x0d\0\x01\0rubbish").unwrap();
    let before = contents(&plugins(&folder));
    let invalid = toolbay(
        &folder,
        &["add", file.to_str().unwrap(), "--yes", "--as", "b"],
    );
    assert!(
        invalid.code == 1 && invalid.stderr.contains("is not a valid plugin"),
        "{invalid}"
    );
    assert_eq!(contents(&plugins(&folder)), before);
}

/// Serves `/a.bay`, and redirects of `/loop` and `/away`.
fn serve(archive: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = std::io::BufReader::new(stream.try_clone().unwrap());
            let Ok(Some((head, _))) = read_request(&mut reader) else {
                continue;
            };
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let (status, location, body) = match path.as_str() {
                "/a.bay" => ("200 OK", "", archive.as_slice()),
                "/moved" => ("302 Found", "Location: /a.bay\r\n", b"".as_slice()),
                "/loop" => ("302 Found", "Location: /loop\r\n", b"".as_slice()),
                "/away" => (
                    "302 Found",
                    "Location: http://example.com/a.bay\r\n",
                    b"".as_slice(),
                ),
                _ => ("404 Not Found", "", b"no".as_slice()),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\n{location}Content-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            drop(
                stream
                    .write_all(head.as_bytes())
                    .and_then(|()| stream.write_all(body)),
            );
        }
    });
    format!("http://{address}")
}

#[test]
fn a_url_is_downloaded_and_its_digest_is_verified() {
    let folder = Folder::new();
    let at = project(&folder);
    let packed = toolbay(&folder, &["pack", &at, "--output", &at]);
    let digest = packed
        .raw_stdout
        .trim()
        .rsplit_once(' ')
        .unwrap()
        .1
        .to_owned();
    let site = serve(fs::read(format!("{at}/mine-1.2.0.bay")).unwrap());
    for (path, expected) in [
        (
            format!("/a.bay#sha256={}", "0".repeat(64)),
            "has the digest",
        ),
        ("/missing".to_owned(), "answered with status 404"),
        ("/loop".to_owned(), "redirects more than 5 times"),
        ("/away".to_owned(), "is not a URL with https"),
    ] {
        let refused = toolbay(&folder, &["add", &format!("{site}{path}"), "--yes"]);
        assert!(
            refused.code == 1 && refused.stderr.contains(expected),
            "{expected}: {refused}"
        );
        assert!(contents(&plugins(&folder)).is_empty());
    }
    let plain = toolbay(&folder, &["add", "http://example.com/a.bay", "--yes"]);
    assert_eq!(plain.code, 2, "{plain}");
    for (path, name) in [("/a.bay", "one"), ("/moved", "two")] {
        let url = format!("{site}{path}#sha256={digest}");
        let added = toolbay(&folder, &["add", &url, "--yes", "--as", name]);
        assert_eq!(added.code, 0, "{added}");
        assert!(folder.plugin_path(&format!("{name}.wasm")).exists());
    }
}

/// Returns a header whose path is not checked.
fn header(path: &[u8], kind: EntryType, size: usize) -> Header {
    let mut header = Header::new_ustar();
    header.as_mut_bytes()[..path.len()].copy_from_slice(path);
    header.set_entry_type(kind);
    header.set_size(size as u64);
    header.set_mode(0o777);
    header.set_cksum();
    header
}

fn gzip(tar: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(tar).unwrap();
    encoder.finish().unwrap()
}

/// Returns an archive with a valid plugin and another entry.
fn hostile_archive(path: &[u8], kind: EntryType, link: Option<&str>, content: &[u8]) -> Vec<u8> {
    let component = TinyComponent::new(&["hello"]).build();
    let mut tar = Builder::new(Vec::new());
    for (path, content) in [
        (
            b"plugin.toml".as_slice(),
            b"format = 1\nname = \"a\"\n".as_slice(),
        ),
        (b"a.wasm", component.as_ref()),
    ] {
        let header = header(path, EntryType::Regular, content.len());
        tar.append(&header, content).unwrap();
    }
    let mut entry = header(path, kind, content.len());
    if let Some(link) = link {
        entry.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
        entry.set_cksum();
    }
    tar.append(&entry, content).unwrap();
    gzip(&tar.into_inner().unwrap())
}

#[test]
fn a_hostile_archive_changes_nothing_and_applies_nothing() {
    let folder = Folder::new();
    fs::write(folder.sibling_path("outside"), "mine").unwrap();
    folder.put("other.toml", "prefix = \"x\"");
    let grant = b"permissions.environment = [\"HOME\"]";
    let file = EntryType::Regular;
    let mut archives: Vec<(&str, Vec<u8>)> = Vec::new();
    let paths: [(&str, &[u8]); 21] = [
        ("absolute path", b"/tmp/toolbay-hostile"),
        ("parent folder", b"../outside"),
        ("parent folder inside", b"a.resources/../../outside"),
        ("this folder", b"./a.resources/x"),
        ("grant in place of the proposal", b"a.toml"),
        ("grant in another case", b"A.toml"),
        ("grant of another plugin", b"other.toml"),
        ("proposal of --learn", b"a.toml.proposed"),
        ("configuration", b"toolbay.toml"),
        ("another plugin", b"other.wasm"),
        ("hidden file", b".bashrc"),
        ("hidden file inside", b"a.resources/.env"),
        ("nested archive", b"inner.bay"),
        ("not UTF-8", b"a.resources/\xff"),
        (
            "override of the direction",
            b"a.resources/\xe2\x80\xaegpj.md",
        ),
        ("line end in a name", b"a.resources/x\ny"),
        ("backslash", b"a.resources/..\\..\\x"),
        ("device name", b"a.resources/con"),
        ("duplicate", b"a.wasm"),
        ("duplicate manifest", b"plugin.toml"),
        ("case collision", b"a.WASM"),
    ];
    for (what, path) in paths {
        archives.push((what, hostile_archive(path, file, None, grant)));
    }
    for (what, kind, link) in [
        ("symbolic link", EntryType::Symlink, Some("/etc/passwd")),
        ("hard link", EntryType::Link, Some("/etc/passwd")),
        ("character device", EntryType::Char, None),
        ("block device", EntryType::Block, None),
        ("FIFO", EntryType::Fifo, None),
        ("folder", EntryType::Directory, None),
        ("long name", EntryType::GNULongName, None),
        ("extended header", EntryType::XHeader, None),
        ("file with a link target", file, Some("/etc/passwd")),
    ] {
        archives.push((what, hostile_archive(b"a.resources/x", kind, link, b"")));
    }
    archives.push((
        "ratio",
        hostile_archive(b"a.resources/x", file, None, &vec![0; 8 << 20]),
    ));
    let good = hostile_archive(b"README.md", file, None, b"#");
    archives.push(("truncated", good[..good.len() - 1].to_vec()));
    archives.push(("appended", [good.as_slice(), &good].concat()));
    archives.push(("zip", b"PK\x03\x04".to_vec()));
    archives.push(("empty", Vec::new()));
    let before = contents(folder.sibling_path("outside").parent().unwrap());
    for (what, archive) in archives {
        let path = std::env::temp_dir().join(format!(
            "toolbay-hostile-{}-{}.bay",
            std::process::id(),
            what.replace(' ', "-")
        ));
        fs::write(&path, archive).unwrap();
        let refused = toolbay(
            &folder,
            &["add", path.to_str().unwrap(), "--yes", "--replace"],
        );
        fs::remove_file(&path).unwrap();
        assert!(
            refused.code == 1 && refused.stderr.contains("was not added"),
            "{what}: {refused}"
        );
        let after = contents(folder.sibling_path("outside").parent().unwrap());
        assert_eq!(after, before, "{what}");
    }
    assert!(!Path::new("/tmp/toolbay-hostile").exists());
    // The archive without a hostile entry is accepted: the entries are the reason.
    let path = folder.sibling_path("good.bay");
    fs::write(&path, good).unwrap();
    let added = toolbay(&folder, &["add", path.to_str().unwrap(), "--yes"]);
    assert_eq!(added.code, 0, "{added}");
}

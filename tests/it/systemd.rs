//! Runs the examples of the book under a real systemd, in namespaces of the test. The pages are "Run as
//! a service", "Secrets of a service" and "Uninstall".

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use toolbay_testkit::markdown::code_blocks;
use toolbay_testkit::workspace;

use crate::http::tls::pem;
use crate::support::{Folder, ToolbayCommand, sample};

/// The options of `unshare` for the namespaces in which systemd runs.
const NAMESPACES: [&str; 7] = [
    "--mount", "--pid", "--cgroup", "--uts", "--ipc", "--net", "--fork",
];

/// The time after which a systemd that hangs is stopped, for `timeout`.
const BOOT_TIMEOUT: &str = "120";

/// Returns the blocks of a page in a language. Those of TOML are in the order of the page, with grants.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let path = workspace::root().join("docs/src").join(page);
    let text = fs::read_to_string(path).unwrap();
    let found = code_blocks(&text).into_iter();
    found
        .filter(|block| block.language() == language)
        .map(|block| block.text)
        .collect()
}

/// Returns the commands that write a file.
fn write_command(path: &str, text: &str) -> String {
    format!("mkdir -p \"$(dirname {path})\"\ncat > {path} <<'END'\n{text}END\n")
}

/// Returns whether this test can start systemd: as root, with systemd and overlay file systems.
fn can_boot() -> bool {
    let probe = "mount -t tmpfs tmpfs /mnt && mkdir /mnt/a /mnt/b && \
                 mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/a,workdir=/mnt/b /mnt && mount -t cgroup2 cgroup2 /mnt";
    let mut unshare = Command::new("unshare");
    unshare.args(NAMESPACES).args(["sh", "-c", probe]);
    Path::new("/usr/lib/systemd/systemd").exists()
        && unshare
            .stdin(Stdio::null())
            .output()
            .is_ok_and(|output| output.status.success())
}

/// Returns the script that does what the pages say, and checks the effects.
fn script() -> String {
    let service = blocks("service.md", "sh");
    let secrets = blocks("service-secrets.md", "sh");
    let uninstall = blocks("uninstall.md", "sh");
    let drop_ins = blocks("service-secrets.md", "ini");
    let files = blocks("service-secrets.md", "toml");
    let health =
        "curl --silent --fail --unix-socket /run/toolbay/mcp.sock http://localhost/healthz";
    [
        "fails() { if \"$@\"; then echo \"must fail: $*\"; exit 9; fi; }\nuseradd alice\n",
        &service[0],
        &service[1],
        // Only members of the group can connect.
        &format!("su alice --shell /bin/sh --command '{health}'\n"),
        &format!("fails su nobody --shell /bin/sh --command '{health}'\n"),
        &secrets[0],
        &write_command("/etc/systemd/system/toolbay.service.d/secrets.conf", &drop_ins[0]),
        &write_command("/etc/systemd/system/toolbay.socket.d/port.conf", &drop_ins[1]),
        &write_command("/etc/toolbay/toolbay.toml", &files[0]),
        &write_command("/etc/toolbay/plugins/github.toml", &files[1]),
        &secrets[1],
        "journalctl --unit toolbay.service --follow --lines 100 --output cat | grep --max-count 1 'loaded plugin=.github'\n",
        // The secret has a value.
        "journalctl --unit toolbay.service --no-pager --output cat | tee log\nfails grep WARN.*secrets log\n",
        &uninstall[1],
        "fails ls /etc/systemd/system/toolbay.service\n",
    ]
    .concat()
}

#[test]
fn the_service_and_its_credentials_work_under_systemd() {
    if !can_boot() {
        eprintln!("skipped: this test needs root, systemd, unshare and overlay file systems");
        return;
    }
    let folder = Folder::new();
    let root = folder.sibling_path("systemd");
    let files = root.join("files");
    for below in [
        "usr/bin",
        "etc/systemd/system",
        "etc/toolbay/plugins",
        "root",
    ] {
        fs::create_dir_all(files.join(below)).unwrap();
    }
    let (program, _folder) = ToolbayCommand::new(&folder).into_parts();
    fs::copy(program.get_program(), files.join("usr/bin/toolbay")).unwrap();
    let units = workspace::root().join("packaging/systemd");
    for name in ["toolbay.service", "toolbay.socket"] {
        fs::copy(
            units.join(name),
            files.join("etc/systemd/system").join(name),
        )
        .unwrap();
    }
    fs::copy(
        units.join("toolbay.sysusers"),
        files.join("root/toolbay.sysusers"),
    )
    .unwrap();
    let plugin = files.join("etc/toolbay/plugins/github.wasm");
    fs::write(plugin, sample("calculator")).unwrap();
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    for (path, text) in [
        ("etc/toolbay/toolbay.toml", String::new()),
        ("etc/toolbay/cert.pem", pem("CERTIFICATE", pair.cert.der())),
        (
            "root/key.pem",
            pem("PRIVATE KEY", &pair.signing_key.serialize_der()),
        ),
        ("root/github-token", "a-value-of-a-secret".to_owned()),
    ] {
        fs::write(files.join(path), text).unwrap();
    }
    fs::write(root.join("script"), script()).unwrap();
    let boot = workspace::root().join("tests/data/systemd/boot.sh");
    let output = Command::new("timeout")
        .args([BOOT_TIMEOUT, "unshare"])
        .args(NAMESPACES)
        .arg("bash")
        .args([&boot, &root])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let log = fs::read_to_string(root.join("out/log")).unwrap_or_default();
    let code = fs::read_to_string(root.join("out/code")).unwrap_or_default();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(code.trim(), "0", "{log}\n{errors}");
    for expected in ["ok", "listening on https://127.0.0.1:8931/mcp"] {
        assert!(log.contains(expected), "{expected}: {log}");
    }
}

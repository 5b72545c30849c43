//! Tests what a confined process can and cannot do, from within a confined child process.

#![allow(
    unsafe_code,
    reason = "system calls that have no safe form, because nobody should make them"
)]

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use toolbay_confine::{ConfinementPlan, confine, own_program_files};

/// Working directory of the confined process.
const FOLDER: &str = "CONFINE_TEST_FOLDER";

/// Name of an abstract socket of the outer process.
const SOCKET: &str = "CONFINE_TEST_SOCKET";

/// Path of a Unix socket of the outer process that is not part of the plan.
const LISTENER: &str = "CONFINE_TEST_LISTENER";

/// Path of a datagram socket to which the confined process connects before it is confined.
const TOLD: &str = "CONFINE_TEST_TOLD";

/// Number of operations that the confined process can still perform. It tries these first.
const ALLOWED: usize = 15;

/// Port on which the outer process listens.
const PORT: &str = "CONFINE_TEST_PORT";

fn outcome<T, E: std::fmt::Debug>(name: &str, result: Result<T, E>) {
    let said = match result {
        Ok(_) => "done".to_owned(),
        Err(error) => {
            let text = format!("{error:?}");
            let kinds = ["PermissionDenied", "CrossesDevices", "Unsupported"];
            kinds
                .into_iter()
                .find(|kind| text.contains(kind))
                .map_or(text.clone(), str::to_owned)
        }
    };
    let mut out = std::io::stdout();
    let _ = writeln!(out, "| {name}: {said}");
}

/// Makes a system call with these arguments. None of the calls is harmful if it succeeds.
fn call(name: &str, number: libc::c_long, arguments: [libc::c_long; 4]) {
    let [a, b, c, d] = arguments;
    // SAFETY: each call is rejected before the kernel reads its arguments, or fails because they
    // are invalid.
    let returned = unsafe { libc::syscall(number, a, b, c, d) };
    outcome(
        name,
        if returned < 0 {
            Err(std::io::Error::last_os_error())
        } else {
            Ok(())
        },
    );
}

/// Runs in a separate process.
#[test]
#[ignore = "the other test starts it in a process of its own"]
#[expect(
    clippy::too_many_lines,
    reason = "a list of attempts that share what was opened before the process was confined"
)]
fn inside() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let at = |name: &str| folder.join(name);
    let listening = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = std::thread::current().id();
    let mut execute = own_program_files().unwrap();
    execute.push(at("never-there"));
    let plan = ConfinementPlan {
        read: ["/etc", "/usr", "/lib", "/lib64", "/proc"]
            .map(PathBuf::from)
            .into_iter()
            .chain([at("read")])
            .collect(),
        write: vec![at("write"), at("gone"), "/dev/null".into()],
        remove: vec![at("remove")],
        execute,
    };
    let told = UnixDatagram::unbound().unwrap();
    told.connect(std::env::var(TOLD).unwrap()).unwrap();
    let confined = confine(&plan);
    assert_eq!(std::thread::current().id(), here);
    let mut out = std::io::stdout();
    let _ = writeln!(out, "confined: {confined}");
    assert_ne!(
        confined.to_string(),
        "nothing",
        "{:?}",
        confined.missing_restrictions()
    );
    let reach = confined.reachable_files().unwrap_or_default();
    assert!(reach.allows(&at("read/file"), false) && !reach.allows(&at("secret/file"), false));

    outcome("read what may be read", fs::read(at("read/file")));
    outcome(
        "write what may be written",
        fs::write(at("write/file"), "x"),
    );
    outcome("make a folder there", fs::create_dir(at("write/folder")));
    outcome(
        "rename within it",
        fs::rename(at("write/file"), at("write/folder/file")),
    );
    outcome("remove it", fs::remove_dir_all(at("write/folder")));
    outcome(
        "remove what may be removed",
        fs::remove_file(at("remove/file")),
    );
    outcome(
        "start this program",
        Command::new("/proc/self/exe").arg("--list").output(),
    );
    outcome(
        "connect to a port",
        TcpStream::connect(("127.0.0.1", std::env::var(PORT).unwrap().parse().unwrap())),
    );
    outcome(
        "send a datagram",
        UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"x", "127.0.0.1:9")),
    );
    outcome("use the socket that listens", listening.local_addr());
    outcome("use a socket that was connected", told.send(b"x"));
    outcome("make a pair of streams", UnixStream::pair());
    outcome("resolve a name", ("localhost", 80).to_socket_addrs());
    call(
        "ask for routes",
        libc::SYS_socket,
        [libc::AF_NETLINK.into(), libc::SOCK_RAW.into(), 0, 0],
    );
    outcome(
        "start a thread",
        std::thread::Builder::new()
            .spawn(|| ())
            .map(std::thread::JoinHandle::join),
    );

    outcome(
        "read what may only be removed",
        fs::read(at("remove/other")),
    );
    outcome(
        "write where files may only be removed",
        fs::write(at("remove/new"), "x"),
    );
    outcome("read a file elsewhere", fs::read(at("secret/file")));
    outcome("read it through a link", fs::read(at("read/link")));
    outcome(
        "read it through /proc",
        fs::read(format!("/proc/self/root{}", at("secret/file").display())),
    );
    outcome("list a folder elsewhere", fs::read_dir(at("secret")));
    outcome(
        "write where only reading is allowed",
        fs::write(at("read/file"), "x"),
    );
    outcome("write elsewhere", fs::write(at("secret/new"), "x"));
    outcome(
        "truncate elsewhere",
        fs::File::options()
            .write(true)
            .truncate(true)
            .open(at("secret/file")),
    );
    outcome("remove elsewhere", fs::remove_file(at("secret/file")));
    outcome(
        "link it into what may be read",
        fs::hard_link(at("secret/file"), at("write/stolen")),
    );
    outcome(
        "start a shell",
        Command::new("/bin/sh").arg("-c").arg("true").output(),
    );
    fs::write(at("write/program"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(
        at("write/program"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    outcome(
        "start what was written",
        Command::new(at("write/program")).output(),
    );
    outcome("listen on a port", TcpListener::bind("127.0.0.1:0"));
    outcome("make a socket file", UnixListener::bind(at("write/socket")));
    let name = SocketAddr::from_abstract_name(std::env::var(SOCKET).unwrap()).unwrap();
    outcome(
        "connect to another process's socket",
        UnixStream::connect_addr(&name),
    );
    outcome(
        "connect to a socket of another program",
        UnixStream::connect(std::env::var(LISTENER).unwrap()),
    );
    outcome("make a socket for datagrams", UnixDatagram::unbound());
    outcome("make a pair of sockets for datagrams", UnixDatagram::pair());
    let other = fs::read(format!(
        "/proc/{}/environ",
        std::os::unix::process::parent_id()
    ));
    outcome("read another process's environment", other);

    call(
        "signal another process",
        libc::SYS_kill,
        [std::os::unix::process::parent_id().into(), 0, 0, 0],
    );
    call(
        "ptrace",
        libc::SYS_ptrace,
        [0x4206, std::os::unix::process::parent_id().into(), 0, 0],
    );
    call(
        "process_vm_readv",
        libc::SYS_process_vm_readv,
        [std::os::unix::process::parent_id().into(), 0, 0, 0],
    );
    call("mount", libc::SYS_mount, [0, 0, 0, 0]);
    call(
        "unshare",
        libc::SYS_unshare,
        [libc::CLONE_NEWUSER.into(), 0, 0, 0],
    );
    call(
        "clone of a namespace",
        libc::SYS_clone,
        [(libc::CLONE_NEWUSER | 0x7e00).into(), 0, 0, 0],
    );
    call("clone3", libc::SYS_clone3, [0, 0, 0, 0]);
    call("bpf", libc::SYS_bpf, [0, 0, 0, 0]);
    call("io_uring_setup", libc::SYS_io_uring_setup, [1, 0, 0, 0]);
    call("perf_event_open", libc::SYS_perf_event_open, [0, 0, 0, 0]);
    call("userfaultfd", libc::SYS_userfaultfd, [0, 0, 0, 0]);
    call("keyctl", libc::SYS_keyctl, [0, 0, 0, 0]);
    call("kexec_load", libc::SYS_kexec_load, [0, 0, 0, 0]);
    call(
        "open_by_handle_at",
        libc::SYS_open_by_handle_at,
        [0, 0, 0, 0],
    );
    call(
        "a raw packet socket",
        libc::SYS_socket,
        [libc::AF_PACKET.into(), libc::SOCK_DGRAM.into(), 0, 0],
    );
    call(
        "a socket to the hypervisor",
        libc::SYS_socket,
        [libc::AF_VSOCK.into(), libc::SOCK_STREAM.into(), 0, 0],
    );
    call(
        "a socket for audit",
        libc::SYS_socket,
        [libc::AF_NETLINK.into(), libc::SOCK_RAW.into(), 9, 0],
    );
    call(
        "a socket for sock_diag",
        libc::SYS_socket,
        [libc::AF_NETLINK.into(), libc::SOCK_RAW.into(), 4, 0],
    );
    call("open_tree_attr", 467, [0, 0, 0, 0]);
    call("quotactl_fd", libc::SYS_quotactl_fd, [0, 0, 0, 0]);
    call("process_madvise", libc::SYS_process_madvise, [0, 0, 0, 0]);
    call("move_pages", libc::SYS_move_pages, [0, 0, 0, 0]);
    call(
        "type on the terminal",
        libc::SYS_ioctl,
        [0, libc::TIOCSTI.try_into().unwrap(), 0, 0],
    );
    #[cfg(target_arch = "x86_64")]
    call(
        "getpid in its x32 form",
        0x4000_0000 + libc::SYS_getpid,
        [0, 0, 0, 0],
    );
}

/// Runs in a separate process.
#[test]
#[ignore = "the other test starts it in a process of its own"]
fn inside_a_container_that_refuses() {
    if std::env::var_os(FOLDER).is_none() {
        return;
    }
    // Like container profiles, which allow the system calls that they list and reject all others.
    let refused = [libc::SYS_landlock_create_ruleset, libc::SYS_seccomp]
        .map(|call| (call, Vec::new()))
        .into();
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let answer = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    let filter: BpfProgram = SeccompFilter::new(refused, SeccompAction::Allow, answer, arch)
        .and_then(TryInto::try_into)
        .unwrap();
    seccompiler::apply_filter(&filter).unwrap();
    let confined = confine(&ConfinementPlan::default());
    let mut out = std::io::stdout();
    let _ = writeln!(
        out,
        "| {confined} | {} | {}",
        confined.missing_restrictions().unwrap(),
        confined.reachable_files().is_none()
    );
    // The process still works as before.
    fs::read("/proc/self/status").unwrap();
    TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(Command::new("/bin/true").status().unwrap().success());
}

#[test]
fn where_the_kernel_refuses_the_process_goes_on_and_says_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "inside_a_container_that_refuses",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(FOLDER, dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        said.contains("| nothing | landlock: the kernel does not have it; seccomp: "),
        "{said}"
    );
    assert!(said.contains(" | true"), "{said}");
}

#[test]
fn a_confined_process_can_do_what_it_needs_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for name in ["read", "write", "remove", "secret"] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(name).join("file"), name).unwrap();
    }
    fs::write(at("remove/other"), "stays").unwrap();
    std::os::unix::fs::symlink(at("secret/file"), at("read/link")).unwrap();
    let listening = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = format!("confine-test-{}", std::process::id());
    let _socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let sockets = tempfile::tempdir().unwrap();
    let listener = sockets.path().join("listener");
    let told = sockets.path().join("told");
    let _listening = UnixListener::bind(&listener).unwrap();
    let _told = UnixDatagram::bind(&told).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "inside",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(FOLDER, dir.path())
        .env(SOCKET, &name)
        .env(LISTENER, &listener)
        .env(TOLD, &told)
        .env(PORT, listening.local_addr().unwrap().port().to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(fs::read_to_string(at("secret/file")).unwrap(), "secret");
    let on = said
        .lines()
        .find_map(|line| line.split_once("confined: "))
        .map(|(_, on)| on.to_owned())
        .unwrap();
    let version: u32 = on
        .strip_prefix("landlock abi ")
        .and_then(|on| on.split(',').next()?.parse().ok())
        .unwrap_or(0);
    let outcomes: Vec<(&str, &str)> = said
        .lines()
        .filter_map(|line| line.split_once("| ")?.1.rsplit_once(": "))
        .collect();
    // Operations that the kernel of this machine can reject. An older kernel does not support all
    // of them.
    let refusable = |name: &str| match name {
        "listen on a port" => version >= 4,
        "truncate elsewhere" => version >= 3,
        "signal another process" => version >= 6,
        name if !name.contains(' ') || name.contains(" socket") || name.contains("clone") => {
            on.contains("seccomp")
        }
        "type on the terminal" | "getpid in its x32 form" => on.contains("seccomp"),
        _ => version >= 1,
    };
    let mut refused = 0;
    for (index, (name, outcome)) in outcomes.iter().enumerate() {
        let allowed = index < ALLOWED;
        let is_answer = ["clone3", "getpid in its x32 form"].contains(name);
        match *outcome {
            "done" => assert!(allowed || !refusable(name), "{name}: {outcome}"),
            // Landlock's errors for an operation through which a file would gain rights at another
            // path.
            "PermissionDenied" | "CrossesDevices" => assert!(!allowed, "{name}: {outcome}"),
            "Unsupported" => assert!(is_answer, "{name}: {outcome}"),
            other => assert!(!allowed && !refusable(name), "{name}: {other}"),
        }
        refused += usize::from(!allowed);
    }
    assert!(
        outcomes.len() == ALLOWED + refused && refused >= 44,
        "{said}"
    );
    assert!(Path::new("/proc/self").exists());
}

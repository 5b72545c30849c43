//! seccomp: system calls that no server needs.
//!
//! A list of what is refused and not of what is allowed: the libraries beneath a server change what they call with every
//! version, and differ from one machine to the next. Refused is what opens the kernel itself (modules, BPF, `io_uring`, page
//! faults handled by programs), other processes (debugging), or another view of the machine (namespaces, mounts), and what
//! sets the machine up.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter_all_threads,
};

/// `open_tree_attr`, which `libc` does not name everywhere. Linux 6.15 brought it; it has the same number on every machine.
const OPEN_TREE_ATTR: libc::c_long = 467;

/// What is refused whatever its arguments are.
const REFUSED: &[libc::c_long] = &[
    // Other processes.
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    // Another view of the machine.
    libc::SYS_chroot,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_umount2,
    libc::SYS_unshare,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_load,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // Keys of the kernel.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // Files by their numbers, past all folders, and what other processes do with files.
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    // The machine.
    libc::SYS_acct,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_nfsservctl,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// The flags of `clone` that make namespaces. `CLONE_NEWTIME` is not one: `clone` takes its value for a signal's.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// The families of sockets that can still be made: IPv4, IPv6, and the one by which the C library asks for the machine's
/// addresses when it resolves a name. No Unix sockets: whoever connects to the one of a bus, a container engine or an agent
/// has programs started that nothing confines. What a process has open, it keeps. Name resolution that prefers a Unix socket
/// (`nscd`, `nss-resolve`) goes on with DNS.
const FAMILIES: [libc::c_int; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// The bits of the type of a socket that are no flags.
const SOCKET_TYPE: u64 = 0xf;

/// The types of pairs of sockets that are refused: all but streams. A datagram socket of a pair can be connected to others.
const PAIRS: [libc::c_int; 3] = [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_SEQPACKET];

/// Requests of `ioctl` by which a program types on the terminal that started it: `TIOCSTI`, `TIOCLINUX`.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// Refuses the system calls, in all threads.
///
/// # Errors
///
/// Why not, as the end of a sentence.
pub(crate) fn refuse() -> Result<(), String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|_| format!("it is not known for {}", std::env::consts::ARCH))?;
    for filter in [newer(arch), refused(arch)] {
        let filter = filter.map_err(|error| error.to_string())?;
        apply_filter_all_threads(&filter).map_err(|error| error.to_string())?;
    }
    #[cfg(target_arch = "x86_64")]
    apply_filter_all_threads(&foreign()).map_err(|error| error.to_string())?;
    Ok(())
}

fn refused(arch: TargetArch) -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let mut namespaces = Vec::new();
    for flag in NAMESPACES {
        let flag = u64::from(flag.cast_unsigned());
        namespaces.push(rule(&[(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)])?);
    }
    rules.insert(libc::SYS_clone, namespaces);
    let other =
        FAMILIES.map(|family| (0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, u64::from(family.cast_unsigned())));
    // Of netlink, only the routes and addresses, which is protocol 0.
    let netlink = [
        (0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, u64::from(libc::AF_NETLINK.cast_unsigned())),
        (2, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, u64::from(libc::NETLINK_ROUTE.cast_unsigned())),
    ];
    rules.insert(libc::SYS_socket, vec![rule(&other)?, rule(&netlink)?]);
    let unix = u64::from(libc::AF_UNIX.cast_unsigned());
    let mut pairs = vec![rule(&[(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, unix)])?];
    for kind in PAIRS {
        let kind = u64::from(kind.cast_unsigned());
        pairs.push(rule(&[(1, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(SOCKET_TYPE), kind)])?);
    }
    rules.insert(libc::SYS_socketpair, pairs);
    let mut typing = Vec::new();
    for request in TYPING {
        typing.push(rule(&[(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request)])?);
    }
    rules.insert(libc::SYS_ioctl, typing);
    filter(rules, libc::EPERM, arch)
}

/// `clone3` takes its flags from memory, where a filter cannot look. Whoever gets this answer uses `clone`.
fn newer(arch: TargetArch) -> Result<BpfProgram, seccompiler::Error> {
    filter(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS, arch)
}

fn filter(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    error: libc::c_int,
    arch: TargetArch,
) -> Result<BpfProgram, seccompiler::Error> {
    let answer = SeccompAction::Errno(error.cast_unsigned());
    let program = SeccompFilter::new(rules, SeccompAction::Allow, answer, arch).and_then(BpfProgram::try_from);
    program.map_err(seccompiler::Error::from)
}

/// A rule that applies if all conditions do: each is an argument, its length, and how it compares with a value.
fn rule(conditions: &[(u8, SeccompCmpArgLen, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::Error> {
    let conditions = conditions
        .iter()
        .cloned()
        .map(|(argument, length, operator, value)| SeccompCondition::new(argument, length, operator, value));
    let rule = conditions.collect::<Result<Vec<_>, _>>().and_then(SeccompRule::new);
    rule.map_err(seccompiler::Error::from)
}

/// The x32 form of each system call has a number of its own, and no program for x86-64 uses one.
#[cfg(target_arch = "x86_64")]
fn foreign() -> BpfProgram {
    use seccompiler::sock_filter;
    /// Set in the numbers of the x32 form.
    const X32: u32 = 0x4000_0000;
    // BPF_LD | BPF_W | BPF_ABS: the number of the system call. BPF_JMP | BPF_JGE | BPF_K. BPF_RET | BPF_K.
    const LOAD: u16 = 0x20;
    const AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let refused = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    vec![
        sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: AT_LEAST, jt: 0, jf: 1, k: X32 },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: refused },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ]
}

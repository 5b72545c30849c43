//! seccomp: rejects system calls that no server needs.
//!
//! The filter is a deny list, not an allow list: the libraries that a server uses change their
//! system calls with every version, and differ between machines. It rejects calls that extend the
//! kernel's attack surface (modules, BPF, `io_uring`, page faults handled by programs), access
//! other processes (debugging), change the view of the machine (namespaces, mounts), or configure
//! the machine.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter_all_threads,
};

/// `open_tree_attr`, which some versions of `libc` do not define. Added in Linux 6.15, with the
/// same number on every architecture.
const OPEN_TREE_ATTR: libc::c_long = 467;

/// System calls that are rejected regardless of their arguments.
const DENIED_SYSCALLS: &[libc::c_long] = &[
    // Access to other processes.
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    // Changes to the process's view of the machine.
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
    // Kernel interfaces with a large attack surface.
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
    // Kernel keyrings.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // Opening files by handle, which bypasses directories, and monitoring file access by other
    // processes.
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    // Machine configuration.
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

/// Flags of `clone` that create namespaces. `CLONE_NEWTIME` is not included: `clone` treats its
/// value as part of the exit signal.
const NAMESPACE_FLAGS: [libc::c_int; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// Address families for which sockets can still be created: IPv4, IPv6, and netlink, which the C
/// library uses to read the machine's addresses when it resolves a name. Unix sockets are not
/// allowed: a process that connects to the socket of a message bus, a container engine or an agent
/// can start unconfined programs. Sockets that are already open stay usable. Name resolution that
/// prefers a Unix socket (`nscd`, `nss-resolve`) falls back to DNS.
const ALLOWED_ADDRESS_FAMILIES: [libc::c_int; 3] =
    [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Mask of the socket type, without its flags.
const SOCKET_TYPE_MASK: u64 = 0xf;

/// Socket types that are rejected for socket pairs: all except streams. A datagram socket of a pair
/// can be connected to another address.
const DENIED_PAIR_TYPES: [libc::c_int; 3] =
    [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_SEQPACKET];

/// `ioctl` requests that insert input into the terminal that started the program: `TIOCSTI`,
/// `TIOCLINUX`.
const TERMINAL_INPUT_REQUESTS: [u64; 2] = [0x5412, 0x541c];

/// Installs the filters in all threads.
///
/// # Errors
///
/// Returns the reason, as the end of a sentence.
pub(crate) fn install_filters() -> Result<(), String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|_| format!("it is not known for {}", std::env::consts::ARCH))?;
    for filter in [clone3_filter(arch), denied_syscalls_filter(arch)] {
        let filter = filter.map_err(|error| error.to_string())?;
        apply_filter_all_threads(&filter).map_err(|error| error.to_string())?;
    }
    #[cfg(target_arch = "x86_64")]
    apply_filter_all_threads(&x32_filter()).map_err(|error| error.to_string())?;
    Ok(())
}

fn denied_syscalls_filter(arch: TargetArch) -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = DENIED_SYSCALLS
        .iter()
        .map(|call| (*call, Vec::new()))
        .collect();
    let mut namespace_rules = Vec::new();
    for flag in NAMESPACE_FLAGS {
        let flag = u64::from(flag.cast_unsigned());
        namespace_rules.push(build_rule(&[(
            0,
            SeccompCmpArgLen::Qword,
            SeccompCmpOp::MaskedEq(flag),
            flag,
        )])?);
    }
    rules.insert(libc::SYS_clone, namespace_rules);
    let other_families = ALLOWED_ADDRESS_FAMILIES.map(|family| {
        (
            0,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Ne,
            u64::from(family.cast_unsigned()),
        )
    });
    // Allow only `NETLINK_ROUTE` (protocol 0), for routes and addresses.
    let netlink_conditions = [
        (
            0,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Eq,
            u64::from(libc::AF_NETLINK.cast_unsigned()),
        ),
        (
            2,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Ne,
            u64::from(libc::NETLINK_ROUTE.cast_unsigned()),
        ),
    ];
    rules.insert(
        libc::SYS_socket,
        vec![
            build_rule(&other_families)?,
            build_rule(&netlink_conditions)?,
        ],
    );
    let unix = u64::from(libc::AF_UNIX.cast_unsigned());
    let mut pair_rules = vec![build_rule(&[(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::Ne,
        unix,
    )])?];
    for kind in DENIED_PAIR_TYPES {
        let kind = u64::from(kind.cast_unsigned());
        pair_rules.push(build_rule(&[(
            1,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(SOCKET_TYPE_MASK),
            kind,
        )])?);
    }
    rules.insert(libc::SYS_socketpair, pair_rules);
    let mut terminal_rules = Vec::new();
    for request in TERMINAL_INPUT_REQUESTS {
        terminal_rules.push(build_rule(&[(
            1,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Eq,
            request,
        )])?);
    }
    rules.insert(libc::SYS_ioctl, terminal_rules);
    build_filter(rules, libc::EPERM, arch)
}

/// Builds the filter that rejects `clone3` with `ENOSYS`. `clone3` takes its flags from memory,
/// which a filter cannot read. Libraries fall back to `clone`.
fn clone3_filter(arch: TargetArch) -> Result<BpfProgram, seccompiler::Error> {
    build_filter(
        BTreeMap::from([(libc::SYS_clone3, Vec::new())]),
        libc::ENOSYS,
        arch,
    )
}

fn build_filter(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    error: libc::c_int,
    arch: TargetArch,
) -> Result<BpfProgram, seccompiler::Error> {
    let action = SeccompAction::Errno(error.cast_unsigned());
    let program = SeccompFilter::new(rules, SeccompAction::Allow, action, arch)
        .and_then(BpfProgram::try_from);
    program.map_err(seccompiler::Error::from)
}

/// Builds a rule that applies if all conditions hold. Each condition is an argument index, its
/// length, an operator and a value.
fn build_rule(
    conditions: &[(u8, SeccompCmpArgLen, SeccompCmpOp, u64)],
) -> Result<SeccompRule, seccompiler::Error> {
    let conditions = conditions
        .iter()
        .cloned()
        .map(|(argument, length, operator, value)| {
            SeccompCondition::new(argument, length, operator, value)
        });
    let rule = conditions
        .collect::<Result<Vec<_>, _>>()
        .and_then(SeccompRule::new);
    rule.map_err(seccompiler::Error::from)
}

/// Builds the filter that rejects the x32 ABI. Each x32 system call has a separate number, and
/// x86-64 programs use none of them.
#[cfg(target_arch = "x86_64")]
fn x32_filter() -> BpfProgram {
    use seccompiler::sock_filter;
    /// Bit that is set in all x32 system call numbers.
    const X32_SYSCALL_BIT: u32 = 0x4000_0000;
    // `LOAD` is BPF_LD | BPF_W | BPF_ABS and loads the system call number. `AT_LEAST` is BPF_JMP |
    // BPF_JGE | BPF_K. `RETURN` is BPF_RET | BPF_K.
    const LOAD: u16 = 0x20;
    const AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let reject = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    vec![
        sock_filter {
            code: LOAD,
            jt: 0,
            jf: 0,
            k: 0,
        },
        sock_filter {
            code: AT_LEAST,
            jt: 0,
            jf: 1,
            k: X32_SYSCALL_BIT,
        },
        sock_filter {
            code: RETURN,
            jt: 0,
            jf: 0,
            k: reject,
        },
        sock_filter {
            code: RETURN,
            jt: 0,
            jf: 0,
            k: libc::SECCOMP_RET_ALLOW,
        },
    ]
}

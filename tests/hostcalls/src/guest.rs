//! Guests that call the host in a random order with random arguments. The same seed generates the
//! same guest.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fastrand::Rng;
use toolbay_testkit::TinyComponent;

use crate::grammar::{Arg, FUNCTIONS, Function, Gives, Kind};

/// The imports of all guests.
const INTERFACES: &str = include_str!("interfaces.wat");

/// Number of handles of each kind that a guest remembers.
const HANDLES: usize = 3;

/// Number of statements of a guest.
const STATEMENTS: std::ops::RangeInclusive<usize> = 4..=60;

/// Number of 64-KiB pages that a guest uses for results, texts and bytes.
const PAGES: u32 = 130;

/// Offset of the bytes, after results and texts.
const BYTES: u32 = 65_536;

/// Lengths of byte lists. The last one covers all memory that a guest has.
const LENGTHS: [u32; 9] = [
    0,
    1,
    17,
    255,
    4096,
    65_536,
    1 << 20,
    4 << 20,
    (PAGES - 1) << 16,
];

/// Lengths, offsets and times.
const NUMBERS: [i64; 12] = [
    0,
    1,
    255,
    4096,
    65_535,
    65_536,
    1 << 20,
    16 << 20,
    1 << 32,
    1 << 40,
    i64::MAX,
    -1,
];

/// Numbers of repetitions of a statement, with their weights.
const REPEATS: [(u32, usize); 4] = [(1, 14), (20, 3), (1500, 2), (1_000_000_000, 1)];

/// Paths and names, one after the other.
const NAMES: [&str; 12] = [
    "f",
    "d",
    "d/f",
    "l",
    "new",
    ".",
    "..",
    "../secret",
    "/etc/passwd",
    "d/../../secret",
    "fifo",
    "out/secret",
];

/// Sequences of calls that reach the network. Each step has little effect without the preceding
/// one.
const ROUTES: [&[&str]; 2] = [
    &[
        "new-fields",
        "new-request",
        "set-authority",
        "set-scheme",
        "set-path",
        "request-body",
        "write-body",
        "send",
        "subscribe-sending",
        "block",
        "get-response",
        "consume",
        "body-stream",
        "blocking-read",
    ],
    &[
        "instance-network",
        "create-socket",
        "start-connect",
        "subscribe-socket",
        "block",
        "finish-connect",
        "blocking-write",
        "blocking-read",
    ],
];

/// The paths of the server that guests may call.
pub(crate) const PATHS: [&str; 3] = ["/", "/large", "/stuck"];

/// A guest.
#[derive(Debug)]
pub(crate) struct Guest {
    /// Its code, as text.
    pub(crate) code: String,
    /// The component.
    pub(crate) component: Vec<u8>,
}

impl Guest {
    /// Generates the guest of this seed, which may call a server at this port.
    pub(crate) fn new(seed: u64, port: u16) -> Self {
        let names = NAMES
            .map(str::to_owned)
            .into_iter()
            .chain(PATHS.map(str::to_owned));
        let names = names.chain([format!("127.0.0.1:{port}")]).collect();
        let mut writer = Writer {
            random: Rng::with_seed(seed),
            code: String::new(),
            names,
            port,
            guided: false,
        };
        writer.body();
        let component = component(&writer.code, &writer.names.concat());
        Self {
            code: writer.code,
            component,
        }
    }
}

struct Writer {
    random: Rng,
    code: String,
    /// The texts of the guest, concatenated: file names, paths, and the authority of the server.
    names: Vec<String>,
    port: u16,
    /// True if the next statements belong together: each runs once, with the first handle of its
    /// kind.
    guided: bool,
}

impl Writer {
    fn body(&mut self) {
        self.code.push_str("(local $base i32) (local $left i32)");
        for kind in Kind::ALL {
            for n in 0..HANDLES {
                let _ = write!(self.code, " (local ${}-{n} i32)", kind.name());
            }
        }
        let texts = self.names.concat();
        let _ = writeln!(
            self.code,
            "\n(local.set $base (i32.shl (memory.grow (i32.const {PAGES})) (i32.const 16)))\n\
             (memory.init $names {} (i32.const 0) (i32.const {}))\n\
             (memory.fill {} (i32.const 0x61) (i32.const 1048576))",
            at(4096),
            texts.len(),
            at(BYTES)
        );
        // Without this, most guests would have no handle at the start.
        self.guided = true;
        for name in ["get-directories", "get-stdout", "new-fields", "open-bucket"] {
            if self.random.bool() {
                self.named(name);
            }
        }
        // Half of the guests take no route.
        let route = self.random.usize(..2 * ROUTES.len());
        if let Some(route) = ROUTES.get(route) {
            for name in *route {
                self.named(name);
            }
        }
        self.guided = false;
        for _ in 0..self.random.usize(STATEMENTS) {
            if let Some(function) = self.random.choice(FUNCTIONS) {
                self.statement(function);
            }
        }
    }

    fn named(&mut self, name: &str) {
        let named: Vec<&Function> = FUNCTIONS
            .iter()
            .filter(|function| function.name == name)
            .collect();
        if let Some(function) = self.random.choice(named) {
            self.statement(function);
        }
    }

    /// Calls a function one or more times, if handles for it exist.
    fn statement(&mut self, function: &Function) {
        let mut call = format!("(call ${}", function.name);
        let mut needed = Vec::new();
        let mut taken = Vec::new();
        for arg in function.args {
            let _ = match arg {
                Arg::Borrowed(kind) | Arg::Owned(kind) => {
                    let handle = self.handle(*kind);
                    if matches!(arg, Arg::Owned(_)) {
                        taken.push(handle.clone());
                    }
                    needed.push(handle.clone());
                    write!(call, " (local.get {handle})")
                }
                Arg::Bytes => write!(call, " {}", self.bytes()),
                Arg::Any => write!(call, " (i32.const 1) {}", self.bytes()),
                Arg::Named => write!(call, " {}", self.text()),
                Arg::Nothing => write!(call, " (i32.const 0) (i32.const 0) (i32.const 0)"),
                Arg::Number => write!(
                    call,
                    " (i64.const {})",
                    self.random.choice(NUMBERS).unwrap_or_default()
                ),
                Arg::Absent(types) => types
                    .split(' ')
                    .try_for_each(|ty| write!(call, " ({ty}.const 0)")),
                Arg::Site => write!(call, " (i32.const 1) {}", self.site()),
                Arg::Path => write!(call, " (i32.const 1) {}", self.path()),
                Arg::Scheme => write!(
                    call,
                    " (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0)"
                ),
                Arg::Method => write!(
                    call,
                    " (i32.const {}) {}",
                    self.random.u32(..10),
                    self.text()
                ),
                Arg::Address => write!(call, " {}", self.address()),
                Arg::Flags(count) => write!(call, " (i32.const {})", self.random.u32(..count)),
                Arg::Folder => write!(call, " (i32.const 33)"),
                Arg::Real => {
                    let progress = self.random.u32(..1_000_000);
                    write!(call, " (f64.const {progress}) (i32.const 0) (f64.const 0)")
                }
                Arg::Return => write!(call, " {}", at(0)),
            };
        }
        call.push(')');
        let mut done = match function.gives {
            Gives::None => call,
            Gives::Word(_) => format!("(drop {call})"),
            Gives::Handle(kind) => format!("(local.set {} {call})", self.handle(kind)),
            Gives::Maybe(kind) => format!(
                "{call} (if (i32.eqz (i32.load8_u {})) (then (local.set {} (i32.load {}))))",
                at(0),
                self.handle(kind),
                at(4)
            ),
            Gives::Pair(first, second) => format!(
                "{call} (if (i32.eqz (i32.load8_u {})) (then (local.set {} (i32.load {})) (local.set {} (i32.load {}))))",
                at(0),
                self.handle(first),
                at(4),
                self.handle(second),
                at(8)
            ),
            Gives::When(kind, bytes, offset) => {
                let set = format!(
                    "(local.set {} (i32.load {}))",
                    self.handle(kind),
                    at(offset)
                );
                let taken = bytes.iter().fold(set, |then, (offset, byte)| {
                    format!(
                        "(if (i32.eq (i32.load8_u {}) (i32.const {byte})) (then {then}))",
                        at(*offset)
                    )
                });
                format!("{call} {taken}")
            }
            Gives::First(kind) => format!(
                "{call} (if (i32.load {}) (then (local.set {} (i32.load (i32.load {})))))",
                at(4),
                self.handle(kind),
                at(0)
            ),
        };
        for handle in &taken {
            let _ = write!(done, " (local.set {handle} (i32.const 0))");
        }
        for handle in needed {
            done = format!("(if (local.get {handle}) (then {done}))");
        }
        match self.repeats() {
            1 => {}
            times => {
                done = format!(
                    "(local.set $left (i32.const {times})) (loop $again {done}\n  (local.set $left (i32.sub \
                     (local.get $left) (i32.const 1))) (br_if $again (local.get $left)))"
                );
            }
        }
        let _ = writeln!(self.code, "{done}");
    }

    fn repeats(&mut self) -> u32 {
        if self.guided {
            return 1;
        }
        let all: usize = REPEATS.iter().map(|(_, weight)| weight).sum();
        let mut chosen = self.random.usize(..all);
        for (times, weight) in REPEATS {
            if chosen < weight {
                return times;
            }
            chosen -= weight;
        }
        1
    }

    /// Returns a local variable with a handle of this kind, or zero.
    fn handle(&mut self, kind: Kind) -> String {
        let number = if self.guided {
            0
        } else {
            self.random.usize(..HANDLES)
        };
        format!("${}-{number}", kind.name())
    }

    fn bytes(&mut self) -> String {
        format!(
            "{} (i32.const {})",
            at(BYTES),
            self.random.choice(LENGTHS).unwrap_or_default()
        )
    }

    fn text(&mut self) -> String {
        let chosen = self.random.usize(..self.names.len());
        self.name(chosen)
    }

    /// Returns the authority of the server, and rarely another text.
    fn site(&mut self) -> String {
        if self.random.u8(..8) == 0 {
            self.text()
        } else {
            self.name(self.names.len() - 1)
        }
    }

    /// Returns a path of the server.
    fn path(&mut self) -> String {
        let chosen = NAMES.len() + self.random.usize(..PATHS.len());
        self.name(chosen)
    }

    /// Returns the text with this index.
    fn name(&self, chosen: usize) -> String {
        let start: usize = self.names.iter().take(chosen).map(String::len).sum();
        let start = u32::try_from(start).unwrap_or_default();
        format!(
            "{} (i32.const {})",
            at(4096 + start),
            self.names.get(chosen).map_or(0, String::len)
        )
    }

    /// Returns an IPv4 address: mostly that of the server.
    fn address(&mut self) -> String {
        let (last, port) = match self.random.u8(..8) {
            0 => (2, self.port),
            1 => (1, self.random.u16(..)),
            2 => (0, 0),
            _ => (1, self.port),
        };
        let first = if last == 0 { 0 } else { 127 };
        let rest = "(i32.const 0) ".repeat(6);
        format!(
            "(i32.const 0) (i32.const {port}) (i32.const {first}) (i32.const 0) (i32.const 0) (i32.const {last}) {}",
            rest.trim_end()
        )
    }
}

/// Returns an address in the memory of the guest.
fn at(offset: u32) -> String {
    format!("(i32.add (local.get $base) (i32.const {offset}))")
}

/// Returns a plugin whose tool `a` runs the code.
fn component(code: &str, names: &str) -> Vec<u8> {
    // Some functions occur twice in the grammar.
    let functions: BTreeMap<&str, &Function> = FUNCTIONS
        .iter()
        .map(|function| (function.name, function))
        .collect();
    let mut lowered = String::new();
    let mut imported = String::new();
    let mut given = String::new();
    for (name, function) in functions {
        let _ = match name.strip_prefix("drop-") {
            Some(kind) => writeln!(lowered, "(core func ${name} (canon resource.drop ${kind}))"),
            None => writeln!(
                lowered,
                "(core func ${name} (canon lower (func ${name}) (memory $memory) (realloc $realloc)))"
            ),
        };
        let params: Vec<&str> = function.args.iter().map(|arg| arg.core()).collect();
        let result = match function.gives {
            Gives::Word(ty) => format!("(result {ty})"),
            Gives::Handle(_) => "(result i32)".to_owned(),
            Gives::None | Gives::Maybe(_) | Gives::First(_) | Gives::Pair(..) | Gives::When(..) => {
                String::new()
            }
        };
        let _ = writeln!(
            imported,
            "(import \"host\" \"{name}\" (func ${name} (param {}) {result}))",
            params.join(" ")
        );
        let _ = write!(given, "(export \"{name}\" (func ${name}))");
    }
    let imports = format!(
        r#"{INTERFACES} {lowered}
        (core module $with-host (import "libc" "memory" (memory 0)) {imported}
          (data $names "{names}") (func (export "run") {code}))
        (core instance $with-host (instantiate $with-host
          (with "libc" (instance $libc)) (with "host" (instance {given}))))
        (alias core export $with-host "run" (core func $import))"#
    );
    TinyComponent::new(&["a"])
        .with_imports(&imports)
        .with_core_items(r#"(import "host" "import" (func $run))"#)
        .before_call("(call $run)")
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: u16 = 40_000;

    #[test]
    fn every_seed_makes_a_guest_and_always_the_same() {
        for seed in 0..200 {
            let guest = Guest::new(seed, PORT);
            assert_eq!(guest.component, Guest::new(seed, PORT).component);
            assert!(guest.code.contains("(call $"));
        }
        assert_ne!(Guest::new(1, PORT).code, Guest::new(2, PORT).code);
    }

    #[test]
    fn every_function_is_called_by_some_guest() {
        let codes: String = (0..600).map(|seed| Guest::new(seed, PORT).code).collect();
        for function in FUNCTIONS {
            assert!(
                codes.contains(&format!("(call ${} ", function.name))
                    || codes.contains(&format!("(call ${})", function.name))
            );
        }
    }
}

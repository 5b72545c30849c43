//! Guests that call the host in a random order, with random arguments. The same seed makes the same guest.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fastrand::Rng;
use toolbay_testkit::Tiny;

use crate::grammar::{Arg, FUNCTIONS, Function, Gives, Kind};

/// What all guests import.
const INTERFACES: &str = include_str!("interfaces.wat");

/// Handles of each kind that a guest remembers.
const HANDLES: usize = 3;

/// Statements of a guest.
const STATEMENTS: std::ops::RangeInclusive<usize> = 4..=40;

/// 64-KiB pages that a guest uses: for results, texts and bytes.
const PAGES: u32 = 130;

/// Where the bytes are, behind results and texts.
const BYTES: u32 = 65_536;

/// Lengths of bytes; the last is all that a guest has.
const LENGTHS: [u32; 9] = [0, 1, 17, 255, 4096, 65_536, 1 << 20, 4 << 20, (PAGES - 1) << 16];

/// Lengths, offsets and times.
const NUMBERS: [i64; 12] = [0, 1, 255, 4096, 65_535, 65_536, 1 << 20, 16 << 20, 1 << 32, 1 << 40, i64::MAX, -1];

/// How often a statement is repeated, and how often each of these is chosen.
const REPEATS: [(u32, usize); 4] = [(1, 14), (20, 3), (1500, 2), (1_000_000_000, 1)];

/// Paths and names, one after the other.
const NAMES: [&str; 12] =
    ["f", "d", "d/f", "l", "new", ".", "..", "../secret", "/etc/passwd", "d/../../secret", "fifo", "out/secret"];

/// A guest.
#[derive(Debug)]
pub(crate) struct Guest {
    /// What it does, as text.
    pub(crate) code: String,
    /// The component.
    pub(crate) component: Vec<u8>,
}

impl Guest {
    /// The guest of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut writer = Writer { random: Rng::with_seed(seed), code: String::new() };
        writer.body();
        let component = component(&writer.code);
        Self { code: writer.code, component }
    }
}

struct Writer {
    random: Rng,
    code: String,
}

impl Writer {
    fn body(&mut self) {
        self.code.push_str("(local $base i32) (local $left i32)");
        for kind in Kind::ALL {
            for n in 0..HANDLES {
                let _ = write!(self.code, " (local ${}-{n} i32)", kind.name());
            }
        }
        let texts = NAMES.concat();
        let _ = writeln!(
            self.code,
            "\n(local.set $base (i32.shl (memory.grow (i32.const {PAGES})) (i32.const 16)))\n\
             (memory.init $names {} (i32.const 0) (i32.const {}))\n\
             (memory.fill {} (i32.const 0x61) (i32.const 1048576))",
            at(4096),
            texts.len(),
            at(BYTES)
        );
        // Otherwise most guests would have no handle to begin with.
        for name in ["get-directories", "get-stdout", "new-fields"] {
            if self.random.bool() {
                self.named(name);
            }
        }
        for _ in 0..self.random.usize(STATEMENTS) {
            if let Some(function) = self.random.choice(FUNCTIONS) {
                self.statement(function);
            }
        }
    }

    fn named(&mut self, name: &str) {
        if let Some(function) = FUNCTIONS.iter().find(|function| function.name == name) {
            self.statement(function);
        }
    }

    /// Calls a function some times, if there are handles for it.
    fn statement(&mut self, function: &Function) {
        let (mut call, mut needed, mut taken) = (format!("(call ${}", function.name), Vec::new(), Vec::new());
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
                Arg::Number => write!(call, " (i64.const {})", self.random.choice(NUMBERS).unwrap_or_default()),
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

    /// A local variable with a handle of this kind, or zero.
    fn handle(&mut self, kind: Kind) -> String {
        format!("${}-{}", kind.name(), self.random.usize(..HANDLES))
    }

    fn bytes(&mut self) -> String {
        format!("{} (i32.const {})", at(BYTES), self.random.choice(LENGTHS).unwrap_or_default())
    }

    fn text(&mut self) -> String {
        let chosen = self.random.usize(..NAMES.len());
        let start: usize = NAMES.iter().take(chosen).map(|name| name.len()).sum();
        let start = u32::try_from(start).unwrap_or_default();
        format!("{} (i32.const {})", at(4096 + start), NAMES.get(chosen).map_or(0, |name| name.len()))
    }
}

/// An address in the memory of the guest.
fn at(offset: u32) -> String {
    format!("(i32.add (local.get $base) (i32.const {offset}))")
}

/// A plugin whose tool `a` runs the code.
fn component(code: &str) -> Vec<u8> {
    // Some functions are in the grammar twice.
    let functions: BTreeMap<&str, &Function> = FUNCTIONS.iter().map(|function| (function.name, function)).collect();
    let (mut lowered, mut imported, mut given) = (String::new(), String::new(), String::new());
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
            Gives::None | Gives::Maybe(_) | Gives::First(_) => String::new(),
        };
        let _ = writeln!(imported, "(import \"host\" \"{name}\" (func ${name} (param {}) {result}))", params.join(" "));
        let _ = write!(given, "(export \"{name}\" (func ${name}))");
    }
    let names = NAMES.concat();
    let imports = format!(
        r#"{INTERFACES} {lowered}
        (core module $with-host (import "libc" "memory" (memory 0)) {imported}
          (data $names "{names}") (func (export "run") {code}))
        (core instance $with-host (instantiate $with-host
          (with "libc" (instance $libc)) (with "host" (instance {given}))))
        (alias core export $with-host "run" (core func $import))"#
    );
    Tiny::new(&["a"])
        .imports(&imports)
        .core(r#"(import "host" "import" (func $run))"#)
        .before_call("(call $run)")
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_makes_a_guest_and_always_the_same() {
        for seed in 0..200 {
            let guest = Guest::new(seed);
            assert_eq!(guest.component, Guest::new(seed).component);
            assert!(guest.code.contains("(call $"));
        }
        assert_ne!(Guest::new(1).code, Guest::new(2).code);
    }

    #[test]
    fn every_function_is_called_by_some_guest() {
        let codes: String = (0..300).map(|seed| Guest::new(seed).code).collect();
        for function in FUNCTIONS {
            assert!(
                codes.contains(&format!("(call ${} ", function.name))
                    || codes.contains(&format!("(call ${})", function.name))
            );
        }
    }
}

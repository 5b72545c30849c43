// Prints the checks of a script, one per line, and their number.

let passed = 0;
let failed = 0;

/** Prints whether a check succeeded; if not, prints the actual value. */
export function check(what, ok, otherwise = '') {
  if (ok) passed += 1;
  else failed += 1;
  console.log(ok ? `ok      ${what}` : `FAILED  ${what}: ${JSON.stringify(otherwise)}`);
}

/** Prints the number of checks, and returns the exit code. */
export function counted() {
  console.log(`${passed} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
}

// What a script checks, a line for each, and how many there were.

let passed = 0;
let failed = 0;

/** Says whether something is as it should be; if not, what there is instead. */
export function check(what, ok, otherwise = '') {
  if (ok) passed += 1;
  else failed += 1;
  console.log(ok ? `ok      ${what}` : `FAILED  ${what}: ${JSON.stringify(otherwise)}`);
}

/** Says how many checks there were, and returns the exit code. */
export function counted() {
  console.log(`${passed} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
}

// Numbers need no canonical ABI: the types are in sums.wit.

export function add(a: i32, b: i32): i32 {
  assert(a != 0, "a must not be 0");
  return a + b;
}

export function mean(a: f64, b: f64): f64 {
  return (a + b) / 2;
}

#[unsafe(no_mangle)]
extern "C" fn add(a: i32, b: i32) -> i32 {
    assert!(a != 0);
    a + b
}

#[unsafe(no_mangle)]
extern "C" fn mean(a: f64, b: f64) -> f64 {
    (a + b) / 2.0
}

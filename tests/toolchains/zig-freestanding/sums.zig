export fn add(a: i32, b: i32) i32 {
    if (a == 0) @trap();
    return a +% b;
}

export fn mean(a: f64, b: f64) f64 {
    return (a + b) / 2;
}

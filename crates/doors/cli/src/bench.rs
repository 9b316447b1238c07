//! `exoshell bench`.

use crate::args::BenchArgs;

/// Measures.
pub(crate) async fn run(args: BenchArgs) -> u8 {
    let _ = (args.json, args.quick, args.only);
    0
}

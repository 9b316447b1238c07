//! Any bytes as every message: no panic, and what is understood is said again the same way.
#![no_main]

use exoshell_wire::{
    ExecDone, ExecStarted, GuestHello, GuestInfo, HostHello, Reply, Request, SessionEnded,
    SessionOpened,
};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

fn try_as<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    if let Ok(value) = serde_json::from_slice::<T>(bytes) {
        let said = serde_json::to_vec(&value).expect("what was read can be written");
        let again = serde_json::from_slice::<T>(&said).expect("what was written can be read");
        assert_eq!(again, value);
    }
}

fuzz_target!(|bytes: &[u8]| {
    try_as::<Request>(bytes);
    try_as::<Reply<ExecDone>>(bytes);
    try_as::<Reply<SessionOpened>>(bytes);
    try_as::<Reply<SessionEnded>>(bytes);
    try_as::<Reply<GuestInfo>>(bytes);
    try_as::<ExecStarted>(bytes);
    try_as::<GuestHello>(bytes);
    if let Ok(hello) = serde_json::from_slice::<HostHello>(bytes) {
        let _ = hello.accept(&["merge"]);
    }
    try_as::<HostHello>(bytes);
});

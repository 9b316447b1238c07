//! The product as its users meet it: the real binary, a home of its own for each test, and the
//! promises of the specification as sentences.

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod concurrency;
#[cfg(test)]
mod events;
#[cfg(test)]
mod guard;
#[cfg(test)]
mod guest;
#[cfg(test)]
mod hangs;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod leftovers;
#[cfg(test)]
mod output;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod recovery;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod state;
#[cfg(test)]
mod sudo;
#[cfg(test)]
mod support;
#[cfg(test)]
mod terminals;
#[cfg(test)]
mod timeouts;

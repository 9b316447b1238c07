//! The real program, started as a place starts it and talked to as a host talks.

#[cfg(test)]
mod command_line;
#[cfg(test)]
mod host;
#[cfg(test)]
mod init;
#[cfg(test)]
mod resume;

//! What is asked of a supervisor, and what it tells.

use std::os::fd::BorrowedFd;

use crate::codec::{Reader, Writer};

/// A program to start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Launch {
    /// The file to execute, absolute.
    pub program: Vec<u8>,
    /// Its arguments, the zeroth included.
    pub arguments: Vec<Vec<u8>>,
    /// Its environment, as `NAME=value`.
    pub environment: Vec<Vec<u8>>,
    /// The directory it starts in.
    pub directory: Vec<u8>,
    /// Its umask.
    pub umask: u32,
    /// Whether its standard output is a terminal that shall be its controlling one.
    pub terminal: bool,
    /// What to do with the tree when the guest disappears: TERM, this long, KILL.
    pub grace_ms: u64,
}

/// Who gets a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// The program itself.
    Program,
    /// Its supervisor, where the program finds it as `/proc/$PPID/fd/<number>` without holding
    /// it or passing it on.
    Supervisor,
}

/// A descriptor to hand over, and the number it gets there.
#[derive(Debug, Clone, Copy)]
pub struct Descriptor<'fd> {
    /// The descriptor here.
    pub source: BorrowedFd<'fd>,
    /// Its number there.
    pub number: u32,
    /// Where "there" is.
    pub holder: Holder,
}

impl<'fd> Descriptor<'fd> {
    /// Hands a descriptor to the program.
    pub const fn program(source: BorrowedFd<'fd>, number: u32) -> Self {
        Self {
            source,
            number,
            holder: Holder::Program,
        }
    }

    /// Leaves a descriptor with the supervisor.
    pub const fn supervisor(source: BorrowedFd<'fd>, number: u32) -> Self {
        Self {
            source,
            number,
            holder: Holder::Supervisor,
        }
    }
}

impl Launch {
    pub(crate) fn encode(&self, numbers: &[(u32, Holder)]) -> Vec<u8> {
        let mut out = Writer::default();
        out.bytes(&self.program);
        out.list(&self.arguments);
        out.list(&self.environment);
        out.bytes(&self.directory);
        out.number(u64::from(self.umask));
        out.number(u64::from(self.terminal));
        out.number(self.grace_ms);
        out.number(numbers.len() as u64);
        for (number, holder) in numbers {
            out.number(u64::from(*number));
            out.number(u64::from(*holder == Holder::Supervisor));
        }
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<(Self, Vec<(u32, Holder)>)> {
        let mut input = Reader(bytes);
        let launch = Self {
            program: input.bytes()?,
            arguments: input.list()?,
            environment: input.list()?,
            directory: input.bytes()?,
            umask: u32::try_from(input.number()?).ok()?,
            terminal: input.number()? != 0,
            grace_ms: input.number()?,
        };
        let count = input.number()?;
        let numbers = (0..count)
            .map(|_| {
                let number = u32::try_from(input.number()?).ok()?;
                let holder = match input.number()? {
                    0 => Holder::Program,
                    _ => Holder::Supervisor,
                };
                Some((number, holder))
            })
            .collect::<Option<Vec<_>>>()?;
        Some((launch, numbers))
    }
}

/// What the guest asks of a running supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// End the whole tree: TERM, wait up to `grace_ms`, KILL.
    Kill {
        /// How long TERM may take.
        grace_ms: u64,
    },
    /// Tell what is alive.
    List,
    /// Send a signal to every process of the tree.
    Signal {
        /// The signal's number.
        signal: i32,
    },
}

impl Order {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = Writer::default();
        let (tag, value) = match self {
            Self::Kill { grace_ms } => (1, grace_ms),
            Self::List => (2, 0),
            Self::Signal { signal } => (3, i64::from(signal).cast_unsigned()),
        };
        out.number(tag);
        out.number(value);
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Reader(bytes);
        match input.number()? {
            1 => Some(Self::Kill {
                grace_ms: input.number()?,
            }),
            2 => Some(Self::List),
            3 => Some(Self::Signal {
                signal: input.small()?,
            }),
            _ => None,
        }
    }
}

/// The step of a start that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The system refused a new process.
    Fork,
    /// The directory cannot be entered.
    Directory,
    /// The program cannot be executed.
    Execute,
}

/// A process of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessEntry {
    /// Its process id.
    pub pid: u32,
    /// Its start time in clock ticks since boot.
    pub start_time: u64,
    /// Its command line, spaces between arguments, cut to a readable length.
    pub command: Vec<u8>,
}

/// What a supervisor tells. After the last one its control socket ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The program runs.
    Started {
        /// Its process id.
        pid: u32,
        /// Its supervisor's.
        supervisor: u32,
    },
    /// The program could not be started.
    Failed {
        /// What failed.
        stage: Stage,
        /// The system's error number.
        errno: i32,
    },
    /// The program exited by itself or by a signal; processes it started may live on.
    Exited {
        /// Its exit code, if it exited.
        code: Option<i32>,
        /// The signal that ended it, if one did.
        signal: Option<i32>,
        /// Whether anything of its tree is alive.
        leftovers: bool,
    },
    /// The answer to [`Order::List`].
    Alive(Vec<ProcessEntry>),
    /// The answer to [`Order::Kill`]: what could not be ended.
    Killed(Vec<ProcessEntry>),
}

fn put_entries(out: &mut Writer, entries: &[ProcessEntry]) {
    out.number(entries.len() as u64);
    for entry in entries {
        out.number(u64::from(entry.pid));
        out.number(entry.start_time);
        out.bytes(&entry.command);
    }
}

fn take_entries(input: &mut Reader<'_>) -> Option<Vec<ProcessEntry>> {
    (0..input.number()?)
        .map(|_| {
            Some(ProcessEntry {
                pid: u32::try_from(input.number()?).ok()?,
                start_time: input.number()?,
                command: input.bytes()?,
            })
        })
        .collect()
}

impl Report {
    pub(crate) fn encode(&self) -> Vec<u8> {
        const NONE: i64 = -1;
        let mut out = Writer::default();
        match self {
            Self::Started { pid, supervisor } => {
                out.number(1);
                out.number(u64::from(*pid));
                out.number(u64::from(*supervisor));
            }
            Self::Failed { stage, errno } => {
                out.number(2);
                out.number(*stage as u64);
                out.number(i64::from(*errno).cast_unsigned());
            }
            Self::Exited {
                code,
                signal,
                leftovers,
            } => {
                out.number(3);
                out.number(code.map_or(NONE, i64::from).cast_unsigned());
                out.number(signal.map_or(NONE, i64::from).cast_unsigned());
                out.number(u64::from(*leftovers));
            }
            Self::Alive(entries) => {
                out.number(4);
                put_entries(&mut out, entries);
            }
            Self::Killed(entries) => {
                out.number(5);
                put_entries(&mut out, entries);
            }
        }
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Reader(bytes);
        Some(match input.number()? {
            1 => Self::Started {
                pid: u32::try_from(input.number()?).ok()?,
                supervisor: u32::try_from(input.number()?).ok()?,
            },
            2 => Self::Failed {
                stage: match input.number()? {
                    0 => Stage::Fork,
                    1 => Stage::Directory,
                    _ => Stage::Execute,
                },
                errno: input.small()?,
            },
            3 => Self::Exited {
                code: Some(input.small()?).filter(|code| *code >= 0),
                signal: Some(input.small()?).filter(|signal| *signal >= 0),
                leftovers: input.number()? != 0,
            },
            4 => Self::Alive(take_entries(&mut input)?),
            5 => Self::Killed(take_entries(&mut input)?),
            _ => return None,
        })
    }
}

//! What a check answers: verdict, category, rule, reason, place in the text.

use std::fmt;

/// How a command is to be treated, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Verdict {
    /// It may run.
    #[default]
    Allow,
    /// A person decides.
    Ask,
    /// It never runs; no approval unlocks it.
    Block,
}

impl Verdict {
    /// Returns the word used in output and in rules.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Block => "block",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Declares the categories once: variant, name and what it is, for people.
macro_rules! categories {
    ($($variant:ident $name:literal $meaning:literal;)*) => {
        /// The class of what a command would do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Category {
            $(#[doc = $meaning] $variant,)*
        }

        impl Category {
            /// Every category, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name used in output, grants and configuration.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns in a few words what the category holds.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            /// Returns the category with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

categories! {
    Harmless "harmless" "Nothing of note.";
    WipeRoot "fs-wipe-root" "Deletes everything on the machine.";
    WipeHome "fs-wipe-home" "Deletes a home directory.";
    WipeSystem "fs-wipe-system" "Deletes a directory of the system.";
    DiskFormat "disk-format" "Formats a disk.";
    DiskOverwrite "disk-overwrite" "Writes over a raw disk.";
    ForkBomb "fork-bomb" "Starts itself without end.";
    KillAll "kill-all" "Signals every process.";
    HostShutdown "host-shutdown" "Stops or restarts the machine.";
    RecursiveDelete "recursive-delete" "Deletes a whole directory.";
    BulkDelete "bulk-delete" "Deletes many files at once.";
    SystemDelete "system-delete" "Deletes a file of the system.";
    Permissions "perms" "Opens or changes permissions.";
    SystemWrite "system-write" "Writes where the system lives.";
    UserConfigWrite "user-config-write" "Writes the user's own settings.";
    CredentialRead "credential-read" "Reads keys or passwords.";
    Exfiltration "exfiltration" "Sends secrets away.";
    ReverseShell "reverse-shell" "Gives a shell to the network.";
    RemoteExec "remote-exec" "Runs downloaded code.";
    ObfuscatedExec "obfuscated-exec" "Runs code that cannot be read here.";
    ShellExec "shell-exec" "Runs a string as shell code.";
    InterpreterExec "interpreter-exec" "Runs a string as a program.";
    ToolExec "tool-exec" "Makes a tool run a command.";
    DynamicCommand "dynamic-command" "Runs a command whose name is not known.";
    DeceptiveText "deceptive-text" "Looks different from what it is.";
    Unparseable "unparseable" "Is not valid shell code.";
    TooLarge "too-large" "Is too long or too deep to judge.";
    EnvInjection "env-injection" "Makes programs load other code.";
    SqlDestructive "sql-destructive" "Destroys data in a database.";
    DbDestructive "db-destructive" "Resets or drops a database.";
    ServiceStop "service-stop" "Stops a service.";
    ProcessKill "process-kill" "Kills processes by force or by name.";
    GitDestructive "git-destructive" "Throws away work in a repository.";
    InfraDestructive "infra-destructive" "Destroys infrastructure.";
    PackageRemove "package-remove" "Removes installed packages.";
    Publish "publish" "Publishes to the world.";
    Persistence "persistence" "Installs something that runs later.";
    AntiForensics "anti-forensics" "Removes traces.";
    SecurityConfig "security-config" "Weakens protection.";
    Privilege "privilege" "Takes or gives privileges.";
    Kernel "kernel" "Changes the running system.";
    DeviceRead "device-read" "Reads a raw disk or memory.";
    SelfControl "self-control" "Touches Exoshell's own controls.";
    UserRule "user-rule" "Is named in the user's own rules.";
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a command acts. A grant for one class does not cover another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Target {
    /// Nothing that could be named.
    #[default]
    None,
    /// The task's own directory.
    Workspace,
    /// A directory for temporary files.
    Temp,
    /// The home directory.
    Home,
    /// Where the system lives.
    System,
    /// A device.
    Device,
    /// Another machine or a container.
    Remote,
    /// Some other path.
    Elsewhere,
    /// A path that is only known when the command runs.
    Unknown,
}

impl Target {
    /// Every class, in the order of declaration.
    pub const ALL: &'static [Self] = &[
        Self::None,
        Self::Workspace,
        Self::Temp,
        Self::Home,
        Self::System,
        Self::Device,
        Self::Remote,
        Self::Elsewhere,
        Self::Unknown,
    ];

    /// Returns the class with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|target| target.name() == name)
    }

    /// Returns the name used in grants.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Workspace => "workspace",
            Self::Temp => "temp",
            Self::Home => "home",
            Self::System => "system",
            Self::Device => "device",
            Self::Remote => "remote",
            Self::Elsewhere => "elsewhere",
            Self::Unknown => "unknown",
        }
    }
}

/// A range of bytes in the command's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl Span {
    /// Returns the span from `start` to `end`.
    #[must_use]
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Returns the text in this span, empty when it does not lie in `text`.
    #[must_use]
    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

/// What a grant covers: a category at a class of targets, never more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApprovalKey {
    /// What would be done.
    pub category: Category,
    /// Where it would be done.
    pub target: Target,
}

impl ApprovalKey {
    /// Reads a key as it is written: `category:target`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (category, target) = text.split_once(':')?;
        Some(Self {
            category: Category::from_name(category)?,
            target: Target::from_name(target)?,
        })
    }
}

impl fmt::Display for ApprovalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.category.name(), self.target.name())
    }
}

/// What was found in a command: the gravest thing, and what else needs a yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How the command is to be treated.
    pub verdict: Verdict,
    /// What it would do.
    pub category: Category,
    /// Where it would do it.
    pub target: Target,
    /// The id of the rule that decided, empty when nothing was found.
    pub rule: &'static str,
    /// One sentence for a person, empty when nothing was found.
    pub why: String,
    /// The part of the text that caused it.
    pub span: Span,
    /// Everything a person says yes to when they approve this command.
    pub keys: Vec<ApprovalKey>,
    /// Whether there is more than `keys` holds. No earlier grant covers such a command.
    pub more: bool,
}

impl Finding {
    /// Returns the finding of a command in which nothing was found.
    #[must_use]
    pub fn harmless() -> Self {
        Self {
            verdict: Verdict::Allow,
            category: Category::Harmless,
            target: Target::None,
            rule: "",
            why: String::new(),
            span: Span::default(),
            keys: Vec::new(),
            more: false,
        }
    }
}

//! Programs that format or rewrite disks.

use super::options::{Grammar, Options};
use super::{Handler, Table};
use crate::finding::Target;
use crate::paths;
use crate::run::{Call, Run, Stream};
use crate::text::UNKNOWN;

pub(super) const TABLE: Table = &[
    (
        &[
            "mkfs",
            "mke2fs",
            "mkswap",
            "mkdosfs",
            "mkntfs",
            "newfs",
            "mkreiserfs",
            "mkfs.ext2",
            "mkfs.ext3",
            "mkfs.ext4",
            "mkfs.xfs",
            "mkfs.btrfs",
            "mkfs.vfat",
            "mkfs.fat",
            "mkfs.msdos",
            "mkfs.exfat",
            "mkfs.ntfs",
            "mkfs.f2fs",
            "mkfs.jfs",
            "mkfs.reiserfs",
            "mkfs.minix",
            "mkfs.cramfs",
            "mkfs.bfs",
            "mkfs.nilfs2",
            "mkfs.udf",
            "mkfs.erofs",
            "newfs_apfs",
            "newfs_hfs",
            "newfs_msdos",
            "bcachefs",
            "mkfs.bcachefs",
            "mkexfatfs",
            "mkudffs",
        ],
        format as Handler,
    ),
    (&["wipefs"], wipefs),
    (
        &[
            "blkdiscard",
            "blkzone",
            "sg_format",
            "sg_sanitize",
            "sg_write_same",
        ],
        always,
    ),
    (&["cryptsetup"], cryptsetup),
    (&["nvme"], nvme),
    (&["diskutil"], diskutil),
    (&["hdparm"], hdparm),
    (
        &[
            "fdisk", "gdisk", "cfdisk", "sfdisk", "sgdisk", "parted", "gpart", "cgdisk",
        ],
        partition,
    ),
    (&["badblocks"], badblocks),
];

/// Reports `rule` for every operand that is a disk, and a question for one that may be.
fn on_disks(run: &mut Run<'_>, call: &Call<'_>, options: &Options<'_>, rule: &'static str) {
    for operand in &options.operands {
        let path = run.paths().absolute(operand.text);
        let span = call.span_of(operand.at);
        if paths::disk(&path) {
            run.report(rule, span, Target::Device, operand.text);
        } else if path.starts_with("/dev/") && !path.starts_with("/dev/null")
            || operand.text.contains(UNKNOWN)
        {
            run.report("perhaps-disk", span, Target::Device, operand.text);
        }
    }
}

fn format(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    // `-F` is a number for FAT and stands alone for the others.
    let fat = call.name.contains("fat") || call.name.contains("dos");
    let letters = if fat {
        "tnLUObCdEFgGiIJmNoRsSTvz"
    } else {
        "tLUObCdEgGiIJmNoRsSTz"
    };
    let options = Options::parse(
        call.arguments,
        Grammar::new(letters, &["type", "label", "uuid"]),
    );
    if options.asks_for_help()
        || options.short("V")
        || (options.short("n") && (call.name.starts_with("mkfs.ext") || call.name == "mke2fs"))
    {
        return Stream::unknown();
    }
    // An option that takes no value here may have swallowed the disk.
    let values = options
        .flags
        .iter()
        .filter_map(|flag| flag.value.map(|value| (value, flag.at)));
    for (value, at) in values.filter(|(value, _)| paths::disk(value)) {
        run.report("format-disk", call.span_of(at), Target::Device, value);
    }
    on_disks(run, call, &options, "format-disk");
    Stream::unknown()
}

fn wipefs(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new("otO", &["offset", "types", "output", "lock"]),
    );
    let erases = options.has("a", "all") || options.has("o", "offset");
    if erases && !options.has("n", "no-act") && !options.asks_for_help() {
        on_disks(run, call, &options, "format-disk");
    }
    Stream::unknown()
}

fn always(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new("olps", &["offset", "length", "step"]),
    );
    if !options.asks_for_help() && options.texts().next() != Some("report") {
        on_disks(run, call, &options, "format-disk");
    }
    Stream::unknown()
}

fn cryptsetup(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new(
            "chskdSlobpv",
            &[
                "cipher", "hash", "key-size", "key-file", "key-slot", "type", "label",
            ],
        ),
    );
    let action = options.texts().find(|text| {
        text.starts_with("luks")
            || matches!(
                *text,
                "erase" | "reencrypt" | "format" | "open" | "close" | "status"
            )
    });
    if matches!(
        action,
        Some("luksFormat" | "luksErase" | "erase" | "format" | "reencrypt")
    ) && !options.asks_for_help()
    {
        on_disks(run, call, &options, "format-disk");
    } else if matches!(action, Some("luksKillSlot" | "luksRemoveKey")) {
        run.report("storage-destroyed", call.span, Target::Device, "cryptsetup");
    }
    Stream::unknown()
}

fn nvme(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new("nlspa", &["namespace-id", "lbaf", "ses"]),
    );
    if matches!(
        options.texts().next(),
        Some("format" | "sanitize" | "write" | "write-zeroes" | "dsm" | "delete-ns")
    ) && !options.asks_for_help()
    {
        let named = options
            .texts()
            .skip(1)
            .any(|text| text.starts_with("/dev/nvme"));
        let rule = if named { "format-disk" } else { "perhaps-disk" };
        run.report(rule, call.span, Target::Device, call.name);
    }
    Stream::unknown()
}

fn diskutil(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let verb = call.texts().next().unwrap_or_default().to_ascii_lowercase();
    let erases = matches!(
        verb.as_str(),
        "erasedisk"
            | "erasevolume"
            | "partitiondisk"
            | "zerodisk"
            | "randomdisk"
            | "secureerase"
            | "reformat"
            | "resetfusion"
            | "splitpartition"
            | "mergepartitions"
    );
    let container = matches!(
        verb.as_str(),
        "apfs" | "ap" | "corestorage" | "cs" | "appleraid"
    ) && call.texts().nth(1).is_some_and(|word| {
        word.to_ascii_lowercase().starts_with("delete")
            || word.to_ascii_lowercase().starts_with("erase")
    });
    if erases {
        run.report("format-disk", call.span, Target::Device, "diskutil");
    } else if container {
        run.report("storage-destroyed", call.span, Target::Device, "diskutil");
    }
    Stream::unknown()
}

fn hdparm(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let erases = call.texts().any(|text| {
        text.starts_with("--security-erase")
            || text.starts_with("--trim-sector")
            || text.starts_with("--write-sector")
            || text.starts_with("--make-bad-sector")
            || text.starts_with("--fwdownload")
            || text == "--sanitize-block-erase"
            || text == "--sanitize-crypto-scramble"
    });
    if erases {
        run.report("raw-disk-write", call.span, Target::Device, "hdparm");
    }
    Stream::unknown()
}

/// Partition tables: listing is fine, writing is not, talking to one is a question.
fn partition(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::PLAIN);
    let texts: Vec<&str> = options.texts().collect();
    let has = |words: &[&str]| texts.iter().any(|text| words.contains(text));
    let disk = call
        .texts()
        .any(|text| paths::disk(text.split('=').next_back().unwrap_or(text)));
    if options.asks_for_help() || !disk && !call.texts().any(|text| text.contains(UNKNOWN)) {
        return Stream::unknown();
    }
    let input = run.stdin.is_some();
    let lists = match call.name {
        "parted" => {
            has(&["print", "unit", "align-check"])
                && !has(&[
                    "mklabel",
                    "mktable",
                    "mkpart",
                    "rm",
                    "resizepart",
                    "set",
                    "name",
                    "rescue",
                ])
                || options.short("l")
        }
        "sfdisk" => {
            options.short("ldJsTVFg")
                || options.long_flag("list")
                || options.long_flag("dump")
                || options.long_flag("json")
                || options.long_flag("verify")
                || options.has("n", "no-act")
        }
        "sgdisk" => {
            options.short("piOvPbBL") && !options.short("ZzondtclRgGu")
                || options.long_flag("print")
                || options.has("P", "pretend")
        }
        "gpart" => has(&["show", "list", "status", "backup"]),
        _ => options.has("ls", "list") || options.long_flag("getsz"),
    };
    if lists {
        return Stream::unknown();
    }
    let writes = match call.name {
        "fdisk" | "gdisk" | "cgdisk" => input,
        "cfdisk" => false,
        "parted" => texts.len() > 1 || input,
        "sfdisk" => input || texts.len() > 1 || options.long_flag("delete"),
        _ => true,
    };
    let rule = if writes {
        "partition-write"
    } else {
        "perhaps-disk"
    };
    run.report(rule, call.span, Target::Device, call.name);
    Stream::unknown()
}

fn badblocks(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("bcdeiopt", &[]));
    if options.short("w") {
        on_disks(run, call, &options, "raw-disk-write");
    }
    Stream::unknown()
}

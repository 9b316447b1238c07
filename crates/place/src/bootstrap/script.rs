//! The programs that run in a place before a guest does.
//!
//! They are one line of POSIX shell each, without `'`, `\`, `!` or a line break, so that they
//! survive being one single-quoted word of any login shell. Each ends its answers with a line of
//! its own, since something else may hold the stream open. They use no `/dev/null`: a bare root
//! folder may have none, and a redirection would make it a file.

/// The folders that may hold the guest, in the order in which they are tried: the configured one,
/// the user's cache, and what else a user can usually write to.
macro_rules! each_folder {
    () => {
        "exo_u=$(id -u); exo_r=none; \
         if [ -n \"${XDG_CACHE_HOME:-}\" ]; then exo_r=$XDG_CACHE_HOME; \
         elif [ -d \"${HOME:-none}\" ]; then exo_r=$HOME/.cache; fi; \
         for exo_c in \"$exo_f\" \"$exo_r/exoshell\" \"/var/tmp/exoshell-$exo_u\" \
         \"/tmp/exoshell-$exo_u\" \"/dev/shm/exoshell-$exo_u\" \
         \"${XDG_RUNTIME_DIR:-none}/exoshell\"; do "
    };
}

/// Becomes the bridge to the guest if its program is there; otherwise prints what the place is.
///
/// Arguments: nonce, folder name of the program, key of the guest, configured folder, `open` or
/// `existing`, further arguments of `attach`. A folder of another user is never looked into. The
/// guest's own folder is named after the machine's boot too, since a home may be shared by many.
pub(super) const FIND: &str = concat!(
    "exo_n=$1; exo_h=$2; exo_k=$3; exo_f=$4; exo_m=$5; shift 5; exo_b=; exo_g=; exo_o=; ",
    "if [ -r /proc/sys/kernel/random/boot_id ]; then ",
    "read -r exo_b </proc/sys/kernel/random/boot_id; fi; ",
    each_folder!(),
    "case $exo_c in /*) ;; *) continue ;; esac; ",
    "if [ -h \"$exo_c\" ]; then continue; fi; ",
    "if [ -d \"$exo_c\" ] && [ -O \"$exo_c\" ]; then :; else continue; fi; ",
    "set -- \"$@\" --dir \"$exo_c/run/$exo_k-${exo_b%%-*}\"; ",
    "if [ -z \"$exo_g\" ] && [ -x \"$exo_c/$exo_h/exoshell-guest\" ]; then ",
    "exo_g=$exo_c/$exo_h/exoshell-guest; fi; ",
    // A guest of another build can be reached through the program of any build.
    "if [ $exo_m = existing ]; then for exo_p in \"$exo_c\"/*/exoshell-guest; do ",
    "if [ -x \"$exo_p\" ]; then exo_o=$exo_p; fi; done; fi; ",
    "done; ",
    "exo_g=${exo_g:-$exo_o}; if [ -n \"$exo_g\" ]; then ",
    "exo_j=$({ true >\"$exo_g.used\"; } 2>&1); ",
    "exec \"$exo_g\" attach --nonce \"$exo_n\" \"$@\"; fi; ",
    "echo \"$exo_n:need:$(uname -s):$(uname -m):\"; echo \"$exo_n:end:\"",
);

/// Puts the program on stdin into the first folder that can hold it and lets it run.
///
/// Arguments: nonce, folder name of the program, configured folder, SHA-256, size, numbers of the
/// folders to pass over as `:2:3:`. Prints a line for every folder that is unfit. Once stdin was
/// read, the only way to try the next folder is another run.
pub(super) const INSTALL: &str = concat!(
    "exo_n=$1; exo_h=$2; exo_f=$3; exo_s=$4; exo_z=$5; exo_x=$6; exo_i=0; exo_t=; umask 077; ",
    // Its messages are read by us.
    "LC_ALL=C; export LC_ALL; ",
    "exo_no() { echo \"$exo_n:no:$exo_i:$exo_c:$1\"; }; ",
    "exo_q() { rm -f \"$exo_t\"; exit 1; }; trap exo_q 1 2 13 15; ",
    "exo_l() { echo \"$exo_n:end:\"; }; trap exo_l 0; ",
    each_folder!(),
    "exo_i=$((exo_i+1)); ",
    "case $exo_x in *:$exo_i:*) continue ;; esac; ",
    "case $exo_c in /*) ;; none/exoshell) if [ $exo_i = 2 ]; then exo_c=home; ",
    "exo_no \"there is none\"; fi; continue ;; *) continue ;; esac; ",
    // Whoever got there first must not be trusted, nor anything be made inside.
    "if [ -h \"$exo_c\" ]; then exo_no \"it is a symbolic link\"; continue; fi; ",
    // Only what was configured and a cache are made with all that leads there.
    "exo_p=; if [ $exo_i -le 2 ]; then exo_p=-p; fi; ",
    "if [ -e \"$exo_c\" ]; then :; else exo_e=$(mkdir $exo_p -m 700 \"$exo_c\" 2>&1) || ",
    "{ exo_no \"$exo_e\"; continue; }; fi; ",
    "if [ -d \"$exo_c\" ] && [ -O \"$exo_c\" ]; then :; else ",
    "exo_no \"it belongs to another user\"; continue; fi; ",
    "exo_j=$(chmod 700 \"$exo_c\" 2>&1); case $(ls -ld \"$exo_c\") in drwx--[-S]---*) ;; *) ",
    "exo_no \"others can use it\"; continue ;; esac; ",
    "exo_d=$exo_c/$exo_h; exo_t=$exo_d/.$exo_n; ",
    // A file that names no shell is run by ours, where programs may run; one that cannot do that
    // either says something else.
    "exo_e=$({ mkdir -p \"$exo_d\" && echo \"exit 0\" | cat >\"$exo_t\" && chmod 700 \"$exo_t\"; } 2>&1) ",
    "&& [ -s \"$exo_t\" ] || { rm -f \"$exo_t\"; exo_no \"${exo_e:-it cannot be written}\"; continue; }; ",
    "exo_e=$(\"$exo_t\" 2>&1) || case $exo_e in *ermission*) rm -f \"$exo_t\"; ",
    "exo_no \"no program runs there (noexec?)\"; continue ;; esac; ",
    "exo_e=$(cat 2>&1 >\"$exo_t\") || { rm -f \"$exo_t\"; exo_no \"$exo_e\"; exit; }; ",
    "exo_v=$(wc -c <\"$exo_t\") || exo_v=$exo_z; exo_v=$(($exo_v+0)); ",
    "if [ $exo_v -ne $exo_z ]; then rm -f \"$exo_t\"; ",
    "exo_no \"only $exo_v of $exo_z bytes arrived\"; exit; fi; ",
    "exo_v=$({ sha256sum <\"$exo_t\" || shasum -a 256 <\"$exo_t\" || openssl dgst -sha256 <\"$exo_t\" ",
    "|| busybox sha256sum <\"$exo_t\"; } 2>&1) || exo_v=none; ",
    "case $exo_v in *$exo_s*|none) ;; *) rm -f \"$exo_t\"; ",
    "exo_no \"what arrived is damaged\"; exit ;; esac; ",
    "chmod 700 \"$exo_t\"; exo_v=$(\"$exo_t\" --version 2>&1); case $exo_v in exoshell-guest*) ;; *) ",
    "rm -f \"$exo_t\"; exo_no \"the guest does not run there: $exo_v\"; exit ;; esac; ",
    "exo_e=$(mv -f \"$exo_t\" \"$exo_d/exoshell-guest\" 2>&1) || ",
    "{ rm -f \"$exo_t\"; exo_no \"$exo_e\"; exit; }; ",
    "exo_j=$({ true >\"$exo_d/exoshell-guest.used\"; } 2>&1); ",
    // Programs of other builds go when nobody asked for them in a month.
    "exo_p=$({ cd \"$exo_c\" && find . -maxdepth 2 -name exoshell-guest.used -mtime +30; } 2>&1); ",
    "for exo_p in $exo_p; do case $exo_p in ./????????????????/exoshell-guest.used) ",
    "rm -rf \"$exo_c/${exo_p%/*}\" ;; esac; done; ",
    "echo \"$exo_n:ok:$exo_d\"; exit; ",
    "done; echo \"$exo_n:none:\"",
);

/// Prints the first folder that looks as if it could hold the guest, or why there is none. Changes
/// nothing.
///
/// Arguments: nonce, configured folder. Whether programs may run in a folder is read from the list
/// of mounts, where there is one: the mount with the longest path that leads there counts.
pub(super) const LOOK: &str = concat!(
    "exo_n=$1; exo_f=$2; exo_w=none:; ",
    each_folder!(),
    "case $exo_c in /*) ;; *) continue ;; esac; ",
    "if [ -h \"$exo_c\" ]; then continue; fi; ",
    "if [ -e \"$exo_c\" ]; then if [ -O \"$exo_c\" ]; then :; else continue; fi; fi; exo_p=$exo_c; ",
    "while [ -n \"$exo_p\" ]; do if [ -e \"$exo_p\" ]; then break; fi; exo_p=${exo_p%/*}; done; ",
    "if [ -d \"${exo_p:-/}\" ] && [ -w \"${exo_p:-/}\" ]; then :; else continue; fi; ",
    "exo_l=0; exo_o=; if [ -r /proc/mounts ]; then ",
    "while read -r exo_1 exo_2 exo_3 exo_4; do case $exo_p/ in \"${exo_2%/}\"/*) ",
    "if [ ${#exo_2} -ge $exo_l ]; then exo_l=${#exo_2}; exo_o=$exo_4; fi ;; esac; ",
    "done </proc/mounts; fi; ",
    "case ,$exo_o in *,noexec*) exo_w=noexec:$exo_c; continue ;; esac; ",
    "exo_w=fit:$exo_c; break; ",
    "done; echo \"$exo_n:$exo_w\"; echo \"$exo_n:end:\"",
);

/// Answers without reading anything.
pub(super) const ECHO: &str = "echo \"$1:alive:\"; echo \"$1:end:\"";

use super::Status;

#[test]
fn a_status_tells_name_parent_and_both_users() {
    let text = b"Name:\tsudo\nUmask:\t0022\nState:\tS (sleeping)\nPid:\t12\nPPid:\t7\n\
                 Uid:\t1007\t0\t0\t0\nGid:\t1007\t0\t0\t0\n";
    let expected = Status {
        name: "sudo".to_owned(),
        parent: 7,
        real_uid: 1007,
        effective_uid: 0,
    };
    assert_eq!(Status::parse(text), Some(expected));
}

#[test]
fn a_name_cannot_pass_for_another_field() {
    let text = b"Name:\tx\\nUid:\t0\nPPid:\t7\nUid:\t5\t6\t6\t6\n";
    let status = Status::parse(text).unwrap();
    assert_eq!((status.real_uid, status.effective_uid), (5, 6));
    assert_eq!(Status::parse(b"Name:\tx\n"), None);
}

#[test]
fn the_status_of_this_process_can_be_read() {
    let status = Status::of(std::process::id()).unwrap();
    assert_eq!(status.effective_uid, rustix::process::geteuid().as_raw());
}

use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;

use super::Sshd;

#[tokio::test]
async fn a_server_lets_this_user_in_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Sshd::start(&folder.path().join("sshd")).await.unwrap();
    let client = server.client();
    let port = client.port.unwrap();
    let mut ssh = Command::new("ssh");
    for option in client.options.iter().flatten() {
        ssh.args(["-o", option]);
    }
    let output = ssh
        .args(["-o", "BatchMode=yes", "-p", &port.to_string(), "-i"])
        .arg(client.key.unwrap())
        .arg(client.host.unwrap())
        .arg("echo \"$HOME\"")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.trim(), server.home(), "not the home of the user");
    drop(server);
    let address = (Ipv4Addr::LOCALHOST, u16::try_from(port).unwrap());
    assert!(TcpStream::connect(address).is_err(), "it still listens");
}

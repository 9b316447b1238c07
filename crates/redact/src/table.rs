//! Lines with secrets (between `«` and `»`) and without, of our own making. Random parts are filled
//! in by the tests, see `filled`.

#[rustfmt::skip]
pub(super) const SECRETS: &[&str] = &[
    // Model providers.
    "ANTHROPIC_API_KEY=«sk-ant-api03-{w93}AA»", "key is «sk-ant-api03-{w80}».\n", "«sk-ant-admin01-{w80}»\n",
    "openai: «sk-proj-{w120}» ok", "«sk-{A20}T3BlbkFJ{A20}»", "OPENAI_API_KEY=«sk-{A48}»", "old «sk-{A48}» key",
    "«sk-svcacct-{w60}»", "«sk-or-v1-{h64}»", "deepseek «sk-{h32}»", "«sk-lf-{u}»", "«gsk_{A52}»", "«xai-{A80}»",
    "«pplx-{A48}»", "REPLICATE=«r8_{A37}»", "«nvapi-{w64}»", "«csk-{l48}»", "«tvly-{A32}»", "«lsv2_pt_{h32}_{h10}»",
    "«pcsk_{A60}»", "HF «hf_{A34}»\n", "«e2b_{h40}»", "google «AIza{w35}» end", "«fc-{h32}»", "«wandb_v1_{A40}»",
    // Source hosts and registries.
    "«ghp_{A36}»", "token «gho_{A36}»,", "\"«ghu_{A36}»\"", "(«ghs_{A36}»)", "«ghr_{A76}»", "«github_pat_{A22}_{A59}»",
    "git clone https://x-access-token:«ghp_{A36}»@github.com/a/b", "https://«ghp_{A36}»@github.com/a/b",
    "\x1b[32m«ghp_{A36}»\x1b[0m", "{\"a\":\"x\\n«ghp_{A36}»\"}", "«glpat-{w20}»", "«glpat-{w27}.01.{l9}»", "«gldt-{w20}»",
    "«glrt-{w20}»", "«glptt-{h40}»", "«glcbt-{A2}_{w20}»", "«GR1348941{w20}»", "«ATBB{A32}»", "«ATATT3xFfGF0{w150}={U8}»",
    "//registry.npmjs.org/:_authToken=«npm_{A36}»", "«npm_{A36}»", "«pypi-AgEIcHlwaS5vcmc{w120}»", "«rubygems_{h48}»",
    "«dckr_pat_{w27}»", "«cio{A32}»", "nuget «oy2{l43}»",
    // Clouds.
    "«AKIA{U16}»", "aws_access_key_id = «AKIA{U16}»\n", "«ASIA{U16}»,", "user,«AKIA{U16},{b40}»\n",
    "aws_secret_access_key = «{b40}»\n", "AWS_SECRET_ACCESS_KEY=«{b40}»", "\"SecretAccessKey\": \"«{b40}»\",",
    "\"SessionToken\": \"«{b300}»\"", "AWS_SESSION_TOKEN=«IQoJb3JpZ2luX2Vj{b300}»", "«IQoJb3JpZ2luX2Vj{b200}=»",
    "«ya29.{w120}»", "«GOCSPX-{w28}»", "«1//0{w60}»", "\"client_secret\": \"«GOCSPX-{w28}»\"", "«dop_v1_{h64}»", "«dapi{h32}»",
    "VAULT_TOKEN=«hvs.{w90}»", "«hvs.{w24}»", "«dp.pt.{A43}»", "«HRKU-{u}»", "«fm2_{b80}»", "«sbp_{h40}»", "«sb_secret_{w31}»",
    "AccountKey=«{b86}==»;EndpointSuffix=core.windows.net", "SharedAccessKey=«{b43}=»", "azure {A3}«8Q~{w31}AbC» x",
    "https://a.blob.core.windows.net/c?sv=2022&se=x&sig=«{A42}%3D»", "AZURE_CLIENT_SECRET=«{A3}8Q~{w31}AbC»",
    "X-Amz-Signature=«{h64}»", "«LTAI{A20}»", "«pscale_tkn_{w43}»", "«tskey-auth-{A12}CNTRL-{A32}»", "«AGE-SECRET-KEY-1{U58}»",
    "«CCIPAT_{A22}_{h40}»", "«pul-{h40}»", "«sqp_{h40}»", "«vck_{A56}»",
    // Services.
    "«sk_live_{A24}»", "«sk_test_{A99}»", "«rk_live_{A24}»", "«whsec_{A32}»", "«sq0atp-{w22}»", "«sq0csp-{w43}»", "«shpat_{h32}»",
    "«xoxb-{d12}-{d12}-{A24}»", "«xoxp-{d12}-{d12}-{d12}-{h32}»", "«xapp-1-A{d10}-{d13}-{h64}»", "«xoxe.xoxp-1-{A100}»",
    "https://hooks.slack.com/services/«T{U8}/B{U8}/{A24}»", "https://discord.com/api/webhooks/«{d18}/{w68}»",
    "«SG.{w22}.{w43}»", "«key-{h32}»", "«xkeysib-{h64}-{A16}»", "«lin_api_{A40}»", "«ntn_{A46}»", "«secret_{A43}»",
    "«sntrys_{w80}», x", "«glc_{b60}»", "«glsa_{A32}_{h8}»", "«NRAK-{U27}»", "«PMAK-{h24}-{h34}»", "«figd_{w40}»", "«phx_{A43}»",
    "{d9}:«AA{w33}» telegram", "«MTIzNDU2Nzg5MDEyMzQ1Njc4.G{A5}.{w38}»", "«SK{h32}»", "«p8e-{A32}»", "«EZAK{A54}»",
    // Web tokens and headers.
    "«eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{w43}»", "t=«eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.{w300}»;",
    "Authorization: Bearer «{A40}»", "authorization: bearer «{w60}»\r\n", "-H 'Authorization: Bearer «{h64}»'",
    "-H \"Authorization: token «{h40}»\" x", "Authorization: Basic «{b32}==»", "\"Authorization\": \"Bearer «{A32}»\"",
    "{'Authorization': 'Basic «{b28}»'}", "Proxy-Authorization: Basic «{b28}»", "curl -H 'X-Api-Key: «{A32}»' x",
    "x-api-key: «{A40}»\n", "X-Auth-Token: «{h32}»", "Bearer «{A43}» was sent", "PRIVATE-TOKEN: «{A20}»",
    // Addresses.
    "postgres://app:«s3cr3tPw»@db:5432/x", "postgresql://u:«p%40ss!word»@h/db", "mysql://root:«{A12}»@127.0.0.1/x",
    "redis://:«{A20}»@cache:6379/0", "mongodb+srv://me:«{A16}»@c.mongodb.net/?x=1", "https://user:«hunter2»@example.com/",
    "amqp://guest:«guest»@mq/", "ftp://me:«{A8}»@files.example.com", "DATABASE_URL=postgres://u:«{A16}»@h/d\n",
    "https://«{h32}»@o1.ingest.sentry.io/2", "smtp://mailer:«P@ss:w0rd»@mx:25", "http://u:«{A10}»@proxy:3128",
    // Names.
    "DB_PASSWORD=«hunter2»\n", "export PGPASSWORD=«correcthorse»\n", "MYSQL_ROOT_PASSWORD=«Tr0ub4dor&3,x»\n", "password=«hunter22»&x=1",
    "\"password\": \"«c0rrect-Horse!»\",", "password: \"«Sup3rS3cret»\"", "passwd='«x7!kLm2#»'", "  password: «aB3$xK9!qr»\n",
    "db.password=«Zx9kLmQ2»", "spring.datasource.password=«kj3h4kj5h3»\n", "--password «aB3xK9qrs» x", "--password=«aB3xK9qrs» x",
    "mysql --password='«aB3xK9!rs»' -e x", "machine h login me password «aB3xK9qrsT»\n", "<password>«aB3xK9qrsT»</password>",
    "Server=x;User=sa;Password=«aB3xK9!rsT»;", "Pwd=«aB3xK9!rsT»;", "API_KEY=«{A32}»\n", "api_key: «{h32}»", "apikey=«{A24}»&q=1",
    "\"apiKey\": \"«{A39}»\"", "const apiKey = '«{A32}»';", "SECRET_KEY = \"«{w50}»\"", "SECRET_KEY_BASE=«{h128}»\n",
    "JWT_SECRET=«{b44}»\n", "client_secret=«{A40}»", "\\\"client_secret\\\": \\\"«{A40}»\\\"", "access_token=«{A64}»&x",
    "\"access_token\":\"«{w100}»\"", "refresh_token: «{w64}»", "GITHUB_TOKEN: «{h40}»", "token = «{A40}»", "token=«{u}»",
    "ENCRYPTION_KEY=«{b43}=»\n", "STRIPE_WEBHOOK_SECRET: '«{A32}»'", "SERVICE_KEY=«{u}»\n", "ALGOLIA_ADMIN_KEY=«{h32}»",
    "DATADOG_APP_KEY: «{h40}»", "TWILIO_AUTH_TOKEN=«{h32}»", "MY_KEY=«{A24}»\n", "session_secret => «{A32}»", "os.environ['API_TOKEN'] = '«{A32}»'",
    "setEnv(\"API_TOKEN\", \"«{A32}»\")", "--api-key «{A32}»", "--token=«{A32}»", "ENV APP_SECRET=«{A32}»", "-e MY_SECRET=«{A32}» img",
    "\"auth\": \"«{b40}»\"", "_auth=«{b40}»", "private_key = «{b44}»", "storage-account-key: «{b86}==»", "signing_key='«{h64}»'",
    "ELASTIC_PASSWORD='«changed-It-2-me!»'", "credentials: «{A32}»", "BEARER_TOKEN=«AAAAAAAAAAAAAAAAAAAAA{A60}»",
];

#[rustfmt::skip]
pub(super) const HARMLESS: &[&str] = &[
    // Hashes, ids, random text.
    "{h40}", "commit {h40}\n", "{h64}  file.tar.gz", "sha256:{h64}", "{h32}  x", "{u}", "id={u}", "request_id: {u}", "etag: \"{h32}\"",
    "sha512-{b86}==", "integrity: sha512-{b86}==", "\"integrity\": \"sha512-{b86}==\"", "data:image/png;base64,iVBORw0KGgo{b200}=",
    "data:image/png;base64,{b400}", "{b64}", "{A32}", "{A40}", "{w22}", "index {h7}..{h7} 100644", "Merge: {h7} {h7}", "md5:{h32}",
    "checksum = \"{h64}\"", "docker.io/library/debian@sha256:{h64}", "container {h64}", "blob {h40} {d4}", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{b43} me@host",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB{b300} me", "SHA256:{b43} me@host (ED25519)", "sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjoz{b200}",
    "-----BEGIN CERTIFICATE-----\n{b64}\n{b64}\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----\n{b64}\n-----END PUBLIC KEY-----",
    "-----BEGIN RSA PRIVATE\n", "START = b\"-----BEGIN OPENSSH PRIVATE KEY-----\"", "headers['Authorization'] = authorization.split()", "'Authorization': 'Proxy-Authorization'", "0x{h40}", "v1.2.3-{d4}.{h12}", "go.sum h1:{b43}=", "trace_id={h32} span_id={h16}", "{d10}", "arn:aws:iam::{d12}:role/name",
    // Words that look like prefixes.
    "sk_stream_wait_memory", "sk-learn is not sklearn", "sk-folding-cube sk-cube1", "risk-management-framework-for-large-systems", "task-{d4}-{d4}",
    "desk-{A20}", "ghp_short", "hf_hub_download(repo_id)", "hf_transformers_model_loader_v2", "npm_config_registry=x", "npm_lifecycle_event", "npm_package_dependencies_typescript",
    "AKIAshort", "AKIATHISISTOOLONGFORAKEYID22", "eyJ is how json starts", "eyJhbGciOiJIUzI1NiJ9 alone", "xoxo-love", "key-value", "key-{d4}", "secret_store_provider_for_kubernetes_clusters_v1",
    "SG.something.else", "pa-inline-block", "as-is", "fc-list : family", "re_compile_internal_pattern_buffer", "dapi is a name", "glpat-x", "cio_read_stream_from_the_other_side_of_it",
    "SKILL", "SK8", "rnd_number", "pul-request", "hvs.x", "ya29.", "AIzaShort", "sl.B", "fm2_", "ops_eyJ", "phx_new", "MTA settings", "MTIz", "bearer of bad news", "Bearer token", "Bearer authentication is used",
    // Names without secrets.
    "password:", "Password: ", "Enter password for user@host: ", "password=", "password is required", "password: string", "password: str = None", "password?: string;",
    "password = input()", "password = getpass.getpass()", "password=os.environ['DB_PASSWORD']", "password: ${DB_PASSWORD}", "PASSWORD=$PASSWORD", "password: <your password>",
    "PASSWORD=********", "password: xxxxxxxx", "password=changeme", "passwordField = document.getElementById('password1')", "password_hash=$2b$12${A22}", "password_file=/run/secrets/db1",
    "max_password_length = 128", "PasswordAuthentication no", "this.password = password;", "if password == other.password:", "passwd: files systemd", "passphrase=''",
    "token", "token: string", "tokens: 123456789012", "max_tokens=4096", "token = next_token()", "token=self.token", "let token = parser.peek_token();", "const token = getToken(req);",
    "token: ${{ secrets.GITHUB_TOKEN }}", "token: $TOKEN", "unexpected token: identifier", "csrf_token_name = csrftoken", "tokenizer=AutoTokenizer.from_pretrained", "token_type: bearer_token_type",
    "token_count: 12345678901234567890", "Token::Identifier(name)", "token_url=https://example.com/oauth2/v1/token", "TOKEN_FILE=/var/run/secrets/kubernetes.io/serviceaccount/token",
    "secretName: my-app-tls-certificate-v2", "secret: my-database-credentials", "secretKeyRef:", "kubectl get secret default-token-abcde", "secret_manager=aws", "secret: false",
    "key: value", "key=value", "cache_key={h64}", "cache-key: linux-{h40}", "primary_key=True", "public_key={h64}", "\"key\": \"{u}\"", "foreign key (id) references t", "sort_key: created_at_v2",
    "key_id={h16}", "KEY_FINGERPRINT={h40}", "GPG_KEY={U20}{U20}", "partition_key={u}", "ssh_host_key: {h32}", "objectKey: uploads/2024/05/{u}.png", "for key, value in items:", "key := m[i]",
    "Key: photos/2024/IMG_{d4}.jpg", "author: Somebody <me@example.com>", "auth: required", "auth=none", "\"auth\": {\"type\": \"basic\"}", "oauth2: enabled", "authorization: none", "Authorization: Bearer $TOKEN",
    "Authorization: Bearer <token>", "Authorization: Bearer ${TOKEN}", "-H 'Authorization: Bearer YOUR_API_TOKEN'", "authority: example.com:8080", "AuthorizationError: not allowed",
    "credentials: include", "credential.helper=store", "SSH_AUTH_SOCK=/tmp/ssh-{A8}/agent.{d4}", "aws_access_key_id = $ID", "api_key=YOUR_API_KEY_HERE_1234", "api_key: ''", "api_key=None,",
    "apiKey: process.env.OPENAI_API_KEY2", "API_KEY=${API_KEY:-default1234567890}", "access_key: {{ .Values.accessKey1 }}", "private_key_path=~/.ssh/id_ed25519", "client_secret: [redacted: secret]",
    // Addresses.
    "https://example.com/a:b@c", "http://localhost:8080/", "http://localhost:8080", "git@github.com:owner/repo.git", "ssh://git@github.com/owner/repo.git", "https://user@example.com/path",
    "postgres://user:${PASS}@host/db", "https://user:***@example.com", "http://[::1]:8080/x", "https://registry.example.com:5000/a@sha256:{h64}", "see https://a.b/c?d=e&f={h32}", "file:///etc/passwd",
    "s3://bucket/key/{u}", "https://npmjs.com/package/@scope/name", "mailto:me@example.com", "docker://img@sha256:{h64}", "https://:@x", "a://b",
    // Output of tools.
    "drwxr-xr-x 2 root root 4096 May  1 10:22 secrets", "   Compiling secrecy v0.10.3", "test result: ok. 120 passed; 0 failed", "pass: 10, fail: 0", "PASS: test_token_parser1 (0.01s)", "pass=10 fail=0",
    "passed=1234567", "bypass=true1234", "compass=north12345", "keyboard: us-intl2", "monkey=banana12345", "hotkey: ctrl+shift+p1", "turkey: istanbul34", "Passing tests: 12345678",
    "pwd: /home/user/project1", "PWD=/home/user/My-Project2", "OLDPWD=/tmp/a1b2c3d4e5f6", "secretary: Jane Doe42", "tokenize: wordpiece12345", "author_key_name: abc1234567",
    "at getToken (file.js:12:34)", "error[E0382]: use of moved value: `token`", "warning: unused variable: `password1`", "{\"level\":\"info\",\"msg\":\"token refreshed\",\"id\":\"{u}\"}",
    "User-Agent: curl/8.5.0", "Set-Cookie: theme=dark1234; Path=/", "ok  \tgithub.com/a/b/token\t0.012s", "diff --git a/token.rs b/token.rs", "12 secrets found", "pwd=/srv/app1",
];

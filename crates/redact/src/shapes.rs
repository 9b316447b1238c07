//! Secrets with a prefix of their own: one line each.

use super::class::{
    ALNUM, BASE64, Class, DOTTED, HEX, PADDED, PATH, QUERY, TOKEN68, UPPER, URLSAFE, WORD,
};
use super::found::{Found, Hit, JUDGED, Rest, View};
use super::judge;

/// A secret that is known by how it starts.
pub(super) struct Shape {
    /// How it starts.
    pub(super) prefix: &'static str,
    /// What it is, in words.
    kind: &'static str,
    /// The bytes it goes on with.
    body: Class,
    /// How many of them there are at least.
    min: usize,
    /// How many of them there are at most; 0 = any number.
    max: usize,
    /// Whether the body must look random, since the prefix alone says little.
    random: bool,
    /// Whether the prefix is public and stays, such as the address of a web hook.
    pub(super) keeps_prefix: bool,
}

const fn shape(
    prefix: &'static str,
    kind: &'static str,
    body: Class,
    min: usize,
    max: usize,
) -> Shape {
    Shape {
        prefix,
        kind,
        body,
        min,
        max,
        random: false,
        keeps_prefix: false,
    }
}

/// A shape whose body must look random.
const fn doubtful(
    prefix: &'static str,
    kind: &'static str,
    body: Class,
    min: usize,
    max: usize,
) -> Shape {
    Shape {
        random: true,
        ..shape(prefix, kind, body, min, max)
    }
}

/// A secret at the end of a public address.
const fn hook(prefix: &'static str, kind: &'static str, body: Class, min: usize) -> Shape {
    Shape {
        keeps_prefix: true,
        ..shape(prefix, kind, body, min, 0)
    }
}

pub(super) static SHAPES: &[Shape] = &[
    // Model providers and what stands around them.
    shape("sk-ant-", "anthropic key", URLSAFE, 20, 0),
    shape("sk-proj-", "openai key", URLSAFE, 20, 0),
    shape("sk-svcacct-", "openai key", URLSAFE, 20, 0),
    shape("sk-admin-", "openai key", URLSAFE, 20, 0),
    shape("sk-or-v1-", "openrouter key", HEX, 32, 0),
    shape("sk-lf-", "langfuse key", URLSAFE, 30, 0),
    doubtful("sk-", "api key", URLSAFE, 20, 0),
    doubtful("sk_", "api key", HEX, 40, 0),
    doubtful("sess-", "openai session", ALNUM, 36, 0),
    shape("gsk_", "groq key", ALNUM, 30, 0),
    shape("xai-", "xai key", ALNUM, 40, 0),
    shape("pplx-", "perplexity key", ALNUM, 32, 0),
    shape("r8_", "replicate token", ALNUM, 32, 0),
    doubtful("fw_", "fireworks key", ALNUM, 20, 0),
    shape("nvapi-", "nvidia key", URLSAFE, 40, 0),
    shape("csk-", "cerebras key", ALNUM, 32, 0),
    shape("esecret_", "anyscale key", ALNUM, 20, 0),
    doubtful("tvly-", "tavily key", URLSAFE, 20, 0),
    shape("lsv2_pt_", "langsmith key", WORD, 32, 0),
    shape("lsv2_sk_", "langsmith key", WORD, 32, 0),
    shape("pcsk_", "pinecone key", WORD, 40, 0),
    doubtful("pa-", "voyage key", URLSAFE, 40, 0),
    doubtful("fc-", "firecrawl key", HEX, 32, 0),
    shape("e2b_", "e2b key", HEX, 32, 0),
    shape("dtn_", "daytona key", HEX, 40, 0),
    doubtful("ak-", "modal token", ALNUM, 22, 22),
    doubtful("as-", "modal token", ALNUM, 22, 22),
    shape("hf_", "hugging face token", ALNUM, 30, 0),
    shape("api_org_", "hugging face token", ALNUM, 30, 0),
    doubtful("wandb_v1_", "wandb key", WORD, 30, 0),
    // Source hosts and package registries.
    shape("ghp_", "github token", ALNUM, 30, 0),
    shape("gho_", "github token", ALNUM, 30, 0),
    shape("ghu_", "github token", ALNUM, 30, 0),
    shape("ghs_", "github token", PADDED, 30, 0),
    shape("ghr_", "github token", ALNUM, 30, 0),
    shape("github_pat_", "github token", WORD, 30, 0),
    shape("glpat-", "gitlab token", DOTTED, 20, 0),
    shape("gloas-", "gitlab token", DOTTED, 20, 0),
    shape("gldt-", "gitlab token", DOTTED, 20, 0),
    shape("glrt-", "gitlab token", DOTTED, 20, 0),
    shape("glrtr-", "gitlab token", DOTTED, 20, 0),
    shape("glcbt-", "gitlab token", DOTTED, 16, 0),
    shape("glptt-", "gitlab token", DOTTED, 20, 0),
    shape("glft-", "gitlab token", DOTTED, 20, 0),
    shape("glimt-", "gitlab token", DOTTED, 20, 0),
    shape("glagent-", "gitlab token", DOTTED, 20, 0),
    shape("glsoat-", "gitlab token", DOTTED, 20, 0),
    shape("glffct-", "gitlab token", DOTTED, 20, 0),
    shape("GR1348941", "gitlab token", URLSAFE, 20, 0),
    doubtful("ATBB", "bitbucket token", ALNUM, 24, 0),
    shape("ATATT3", "atlassian token", PADDED, 50, 0),
    shape("ATCTT3", "atlassian token", PADDED, 50, 0),
    shape("npm_", "npm token", ALNUM, 36, 0),
    shape("pypi-AgE", "pypi token", URLSAFE, 50, 0),
    shape("rubygems_", "rubygems key", HEX, 40, 0),
    doubtful("cio", "crates.io token", ALNUM, 32, 32),
    doubtful("oy2", "nuget key", ALNUM, 43, 43),
    shape("dckr_pat_", "docker token", URLSAFE, 20, 0),
    shape("dckr_oat_", "docker token", URLSAFE, 20, 0),
    doubtful("AKCp", "jfrog key", ALNUM, 60, 0),
    // Clouds and services.
    shape("AIza", "google key", URLSAFE, 35, 35),
    shape("ya29.", "google token", DOTTED, 20, 0),
    shape("GOCSPX-", "google client secret", URLSAFE, 24, 0),
    doubtful("1//0", "google refresh token", URLSAFE, 40, 0),
    shape("ABSK", "aws bedrock key", BASE64, 100, 0),
    shape("bedrock-api-key-", "aws bedrock key", BASE64, 20, 0),
    shape("IQoJb3JpZ2lu", "aws session token", BASE64, 60, 0),
    shape("FwoGZXIvYXdz", "aws session token", BASE64, 60, 0),
    shape("amzn.mws.", "aws mws key", URLSAFE, 36, 0),
    doubtful("LTAI", "alibaba key", ALNUM, 16, 24),
    doubtful("AKID", "tencent key", ALNUM, 32, 36),
    shape("dop_v1_", "digitalocean token", HEX, 40, 0),
    shape("doo_v1_", "digitalocean token", HEX, 40, 0),
    shape("dor_v1_", "digitalocean token", HEX, 40, 0),
    doubtful("dapi", "databricks token", HEX, 32, 0),
    shape("hvs.", "vault token", URLSAFE, 20, 0),
    shape("hvb.", "vault token", URLSAFE, 20, 0),
    shape("hvr.", "vault token", URLSAFE, 20, 0),
    shape("dp.pt.", "doppler token", ALNUM, 40, 0),
    shape("dp.st.", "doppler token", DOTTED, 40, 0),
    shape("dp.ct.", "doppler token", ALNUM, 40, 0),
    shape("dp.sa.", "doppler token", ALNUM, 40, 0),
    shape("HRKU-", "heroku key", URLSAFE, 30, 0),
    shape("fm2_", "fly token", BASE64, 40, 0),
    shape("fo1_", "fly token", URLSAFE, 40, 0),
    shape("sbp_", "supabase token", HEX, 40, 0),
    shape("sb_secret_", "supabase key", URLSAFE, 20, 0),
    shape("vercel_blob_rw_", "vercel token", WORD, 20, 0),
    shape("vck_", "vercel key", ALNUM, 30, 0),
    shape("nfp_", "netlify token", ALNUM, 30, 0),
    shape("rnd_", "render key", ALNUM, 28, 0),
    shape("pscale_tkn_", "planetscale token", DOTTED, 30, 0),
    shape("pscale_pw_", "planetscale password", DOTTED, 30, 0),
    shape("pscale_oauth_", "planetscale token", DOTTED, 30, 0),
    shape("CCIPAT_", "circleci token", WORD, 30, 0),
    shape("bkua_", "buildkite token", HEX, 40, 0),
    shape("pul-", "pulumi token", HEX, 40, 0),
    shape("pnu_", "prefect key", ALNUM, 30, 0),
    shape("sqp_", "sonarqube token", HEX, 40, 0),
    shape("squ_", "sonarqube token", HEX, 40, 0),
    shape("sqa_", "sonarqube token", HEX, 40, 0),
    shape("tskey-", "tailscale key", URLSAFE, 20, 0),
    shape("ops_eyJ", "1password token", BASE64, 60, 0),
    shape("AGE-SECRET-KEY-1", "age key", UPPER, 50, 0),
    // Payment, mail, chat, monitoring.
    shape("sk_live_", "stripe key", ALNUM, 16, 0),
    shape("sk_test_", "stripe key", ALNUM, 16, 0),
    shape("rk_live_", "stripe key", ALNUM, 16, 0),
    shape("rk_test_", "stripe key", ALNUM, 16, 0),
    shape("sk_prod_", "stripe key", ALNUM, 16, 0),
    shape("whsec_", "webhook secret", BASE64, 24, 0),
    shape("sq0atp-", "square token", URLSAFE, 20, 0),
    shape("sq0csp-", "square secret", URLSAFE, 30, 0),
    doubtful("EAAA", "square token", URLSAFE, 56, 0),
    doubtful("EAAC", "facebook token", ALNUM, 60, 0),
    shape("shpat_", "shopify token", HEX, 32, 0),
    shape("shpca_", "shopify token", HEX, 32, 0),
    shape("shppa_", "shopify token", HEX, 32, 0),
    shape("shpss_", "shopify secret", HEX, 32, 0),
    shape("xoxa-", "slack token", URLSAFE, 10, 0),
    shape("xoxb-", "slack token", URLSAFE, 10, 0),
    shape("xoxc-", "slack token", URLSAFE, 10, 0),
    shape("xoxd-", "slack token", QUERY, 10, 0),
    shape("xoxe-", "slack token", URLSAFE, 10, 0),
    shape("xoxe.xox", "slack token", URLSAFE, 10, 0),
    shape("xoxo-", "slack token", URLSAFE, 10, 0),
    shape("xoxp-", "slack token", URLSAFE, 10, 0),
    shape("xoxr-", "slack token", URLSAFE, 10, 0),
    shape("xoxs-", "slack token", URLSAFE, 10, 0),
    shape("xapp-", "slack token", URLSAFE, 20, 0),
    hook("hooks.slack.com/services/", "slack web hook", PATH, 30),
    hook("hooks.slack.com/workflows/", "slack web hook", PATH, 30),
    hook("discord.com/api/webhooks/", "discord web hook", PATH, 40),
    hook("discordapp.com/api/webhooks/", "discord web hook", PATH, 40),
    hook("webhook.office.com/webhookb2/", "teams web hook", PATH, 40),
    shape("SG.", "sendgrid key", DOTTED, 60, 0),
    doubtful("key-", "mailgun key", HEX, 32, 32),
    shape("xkeysib-", "brevo key", URLSAFE, 40, 0),
    doubtful("re_", "resend key", WORD, 30, 40),
    shape("lin_api_", "linear key", ALNUM, 30, 0),
    shape("ntn_", "notion token", ALNUM, 40, 0),
    doubtful("secret_", "notion token", ALNUM, 40, 0),
    shape("sntrys_", "sentry token", PADDED, 40, 0),
    shape("sntryu_", "sentry token", HEX, 40, 0),
    shape("glc_", "grafana token", BASE64, 30, 0),
    shape("glsa_", "grafana token", WORD, 30, 0),
    shape("NRAK-", "new relic key", UPPER, 24, 0),
    shape("NRII-", "new relic key", URLSAFE, 24, 0),
    shape("NRJS-", "new relic key", HEX, 16, 0),
    shape("PMAK-", "postman key", URLSAFE, 40, 0),
    shape("phx_", "posthog key", ALNUM, 32, 0),
    shape("figd_", "figma token", URLSAFE, 30, 0),
    shape("rdme_", "readme key", ALNUM, 40, 0),
    shape("duffel_live_", "duffel token", URLSAFE, 30, 0),
    shape("duffel_test_", "duffel token", URLSAFE, 30, 0),
    shape("EZAK", "easypost key", ALNUM, 54, 54),
    shape("EZTK", "easypost key", ALNUM, 54, 54),
    shape("aio_", "adafruit key", ALNUM, 28, 28),
    shape("ico-", "infracost key", ALNUM, 32, 32),
    shape("fio-u-", "frame.io token", URLSAFE, 40, 0),
    shape("p8e-", "adobe secret", ALNUM, 32, 32),
    shape("sl.B", "dropbox token", URLSAFE, 100, 0),
    shape("sl.u.", "dropbox token", URLSAFE, 100, 0),
    // Signed addresses.
    hook("X-Amz-Signature=", "signature", HEX, 32),
    hook("X-Goog-Signature=", "signature", HEX, 32),
    hook("&sig=", "signature", QUERY, 40),
    hook("?sig=", "signature", QUERY, 40),
    hook("X-Amz-Credential=AKIA", "aws key id", UPPER, 16),
    hook("FlyV1 ", "fly token", TOKEN68, 30),
];

impl Shape {
    /// Looks for this shape at a place.
    pub(super) fn find(&self, view: &View<'_>, place: usize) -> Found {
        let delimited = !self.prefix.as_bytes()[0].is_ascii_alphanumeric();
        if !delimited && !view.starts_word(place) {
            return Found::No;
        }
        match view.literal(place, self.prefix.as_bytes()) {
            Some(true) => {}
            Some(false) => return Found::No,
            None => return Found::More { hold: place },
        }
        let body = place + self.prefix.len();
        let limit = if self.max == 0 { JUDGED } else { self.max + 1 };
        let run = view.run(body, self.body, limit);
        if run.open {
            let hold = if self.keeps_prefix { body } else { place };
            return Found::More { hold };
        }
        let text = view.part(body, run.end);
        let fits = text.len() >= self.min && (self.max == 0 || text.len() <= self.max);
        if !fits || judge::is_filler(text) || (self.random && !judge::looks_random(text)) {
            return Found::No;
        }
        Found::Yes(Hit {
            from: if self.keeps_prefix { body } else { place },
            to: run.end,
            kind: self.kind,
            rest: if run.cut {
                Rest::Run(self.body)
            } else {
                Rest::Nothing
            },
        })
    }
}

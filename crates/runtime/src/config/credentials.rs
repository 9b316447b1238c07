//! The environment that local commands get: the caller's, without credentials, and without anything that waits for a person.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::env::{self, Environment};
use super::resolved::Resolved;

/// Credentials of model providers, and of gateways and tracing services in front of them.
const PROVIDERS: &[&str] = &[
    "AI21_API_KEY",
    "AIHUBMIX_API_KEY",
    "AI_GATEWAY_API_KEY",
    "ALEPHALPHA_API_KEY",
    "ALEPH_ALPHA_API_KEY",
    "ANTHROPIC_ADMIN_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_TOKEN",
    "ANYSCALE_API_KEY",
    "ARCEE_API_KEY",
    "ARK_API_KEY",
    "ASSEMBLYAI_API_KEY",
    "AZURE_AI_API_KEY",
    "AZURE_API_KEY",
    "AZURE_OPENAI_AD_TOKEN",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_KEY",
    "BASETEN_API_KEY",
    "BFL_API_KEY",
    "BRAINTRUST_API_KEY",
    "CEREBRAS_API_KEY",
    "CHUTES_API_KEY",
    "CLARIFAI_API_KEY",
    "CLAUDE_API_KEY",
    "CODESTRAL_API_KEY",
    "CODEX_API_KEY",
    "COHERE_API_KEY",
    "COMETAPI_KEY",
    "COPILOT_GITHUB_TOKEN",
    "CO_API_KEY",
    "CURSOR_API_KEY",
    "DASHSCOPE_API_KEY",
    "DEEPGRAM_API_KEY",
    "DEEPINFRA_API_KEY",
    "DEEPINFRA_TOKEN",
    "DEEPSEEK_API_KEY",
    "ELEVENLABS_API_KEY",
    "ELEVEN_API_KEY",
    "ELEVEN_LABS_API_KEY",
    "FAL_AI_API_KEY",
    "FAL_API_KEY",
    "FAL_KEY",
    "FEATHERLESS_API_KEY",
    "FIREWORKSAI_API_KEY",
    "FIREWORKS_AI_API_KEY",
    "FIREWORKS_API_KEY",
    "FRIENDLI_TOKEN",
    "GEMINI_API_KEY",
    "GITHUB_COPILOT_TOKEN",
    "GLM_API_KEY",
    "GOOGLE_AI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_GEMINI_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "GROK_API_KEY",
    "GROQ_API_KEY",
    "HELICONE_API_KEY",
    "HF_API_KEY",
    "HF_TOKEN",
    "HUGGINGFACEHUB_API_TOKEN",
    "HUGGINGFACE_API_KEY",
    "HUGGINGFACE_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "HYPERBOLIC_API_KEY",
    "INCEPTION_API_KEY",
    "INFERMATIC_API_KEY",
    "KILOCODE_API_KEY",
    "KIMI_API_KEY",
    "LAMBDA_API_KEY",
    "LANGCHAIN_API_KEY",
    "LANGFUSE_SECRET_KEY",
    "LANGSMITH_API_KEY",
    "LEPTON_API_KEY",
    "LITELLM_API_KEY",
    "LITELLM_MASTER_KEY",
    "LLAMA_API_KEY",
    "LLM_API_KEY",
    "LUMAAI_API_KEY",
    "LUMA_API_KEY",
    "MINIMAX_API_KEY",
    "MINIMAX_CN_API_KEY",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "NEBIUS_API_KEY",
    "NLP_CLOUD_API_KEY",
    "NOUS_API_KEY",
    "NOVITA_AI_API_KEY",
    "NOVITA_API_KEY",
    "NSCALE_API_KEY",
    "NVIDIA_API_KEY",
    "NVIDIA_NIM_API_KEY",
    "OLLAMA_API_KEY",
    "OPENAI_ADMIN_KEY",
    "OPENAI_API_KEY",
    "OPENAI_COMPATIBLE_API_KEY",
    "OPENAI_KEY",
    "OPENCODE_API_KEY",
    "OPENCODE_GO_API_KEY",
    "OPENCODE_ZEN_API_KEY",
    "OPENROUTER_API_KEY",
    "OPENROUTER_KEY",
    "OPEN_ROUTER_API_KEY",
    "OVH_AI_ENDPOINTS_ACCESS_TOKEN",
    "PALM_API_KEY",
    "PARASAIL_API_KEY",
    "PERPLEXITYAI_API_KEY",
    "PERPLEXITY_API_KEY",
    "POE_API_KEY",
    "PORTKEY_API_KEY",
    "PPLX_API_KEY",
    "PREDIBASE_API_KEY",
    "QIANFAN_API_KEY",
    "QWEN_API_KEY",
    "REKA_API_KEY",
    "REPLICATE_API_KEY",
    "REPLICATE_API_TOKEN",
    "REQUESTY_API_KEY",
    "RUNWAYML_API_SECRET",
    "SAMBANOVA_API_KEY",
    "SCALEWAY_API_KEY",
    "SILICONFLOW_API_KEY",
    "STABILITY_API_KEY",
    "STEPFUN_API_KEY",
    "SYNTHETIC_API_KEY",
    "TOGETHERAI_API_KEY",
    "TOGETHER_AI_API_KEY",
    "TOGETHER_API_KEY",
    "UPSTAGE_API_KEY",
    "VENICE_API_KEY",
    "VERTEX_API_KEY",
    "VOLCENGINE_API_KEY",
    "VOYAGE_API_KEY",
    "WATSONX_APIKEY",
    "WATSONX_API_KEY",
    "WATSONX_TOKEN",
    "WRITER_API_KEY",
    "XAI_API_KEY",
    "XIAOMI_API_KEY",
    "YI_API_KEY",
    "ZAI_API_KEY",
    "ZHIPUAI_API_KEY",
    "ZHIPU_API_KEY",
    "Z_AI_API_KEY",
];

/// Credentials of search, scraping and browser services that agents call as tools.
const SEARCH: &[&str] = &[
    "APIFY_API_TOKEN",
    "APIFY_TOKEN",
    "BING_SEARCH_API_KEY",
    "BRAVE_API_KEY",
    "BRAVE_SEARCH_API_KEY",
    "BRIGHTDATA_API_KEY",
    "BROWSERBASE_API_KEY",
    "BROWSERLESS_API_KEY",
    "BROWSERLESS_TOKEN",
    "BROWSER_USE_API_KEY",
    "COMPOSIO_API_KEY",
    "CONTEXT7_API_KEY",
    "EXA_API_KEY",
    "FIRECRAWL_API_KEY",
    "GOOGLE_CSE_API_KEY",
    "GOOGLE_SEARCH_API_KEY",
    "HONCHO_API_KEY",
    "HYPERBROWSER_API_KEY",
    "JINA_API_KEY",
    "KAGI_API_KEY",
    "LINKUP_API_KEY",
    "MEM0_API_KEY",
    "PARALLEL_API_KEY",
    "SCRAPFLY_API_KEY",
    "SEARCHAPI_API_KEY",
    "SERPAPI_API_KEY",
    "SERPAPI_KEY",
    "SERPER_API_KEY",
    "STEEL_API_KEY",
    "SUPERMEMORY_API_KEY",
    "TAVILY_API_KEY",
    "WOLFRAM_ALPHA_APPID",
    "YOU_API_KEY",
    "ZEP_API_KEY",
];

/// Credentials of bots and mailboxes that a harness talks to people through.
const MESSAGING: &[&str] = &[
    "BLUEBUBBLES_PASSWORD",
    "DINGTALK_CLIENT_SECRET",
    "DISCORD_BOT_TOKEN",
    "DISCORD_TOKEN",
    "EMAIL_PASSWORD",
    "FEISHU_APP_SECRET",
    "LINE_CHANNEL_ACCESS_TOKEN",
    "LINE_CHANNEL_SECRET",
    "MATRIX_ACCESS_TOKEN",
    "MATRIX_PASSWORD",
    "MATTERMOST_TOKEN",
    "SLACK_APP_TOKEN",
    "SLACK_BOT_TOKEN",
    "SLACK_CLIENT_SECRET",
    "SLACK_SIGNING_SECRET",
    "SLACK_USER_TOKEN",
    "TELEGRAM_API_HASH",
    "TELEGRAM_BOT_TOKEN",
    "TELEGRAM_TOKEN",
    "TELEGRAM_WEBHOOK_SECRET",
    "TWILIO_API_SECRET",
    "TWILIO_AUTH_TOKEN",
    "WECOM_SECRET",
    "WHATSAPP_ACCESS_TOKEN",
    "WHATSAPP_TOKEN",
];

/// Credentials of cloud sandboxes: they open other places than the one a command runs in.
const SANDBOXES: &[&str] = &[
    "BEAM_TOKEN",
    "BL_API_KEY",
    "CODESANDBOX_API_KEY",
    "CSB_API_KEY",
    "DAYTONA_API_KEY",
    "DAYTONA_JWT_TOKEN",
    "E2B_ACCESS_TOKEN",
    "E2B_API_KEY",
    "MODAL_TOKEN_ID",
    "MODAL_TOKEN_SECRET",
    "MORPH_API_KEY",
    "RUNLOOP_API_KEY",
    "RUNPOD_API_KEY",
];

/// What every command gets, whatever the caller has: nothing may open a pager or an editor, or ask.
///
/// An editor that changes nothing makes `git commit` without a message end with an error and `git rebase -i` go through as
/// listed. Git hands its editors to a shell, others start them directly: `:` only exists in a shell, `true` everywhere.
const QUIET: &[(&str, &str)] = &[
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("EDITOR", "true"),
    ("GIT_EDITOR", ":"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("GIT_PAGER", "cat"),
    ("GIT_SEQUENCE_EDITOR", ":"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("MANPAGER", "cat"),
    ("PAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("VISUAL", "true"),
];

/// Tells whether a variable is kept from commands.
///
/// Stripped are known credentials of providers and tools, the sudo password, everything of ours, and the names in `remove`; a name
/// in `pass` never is. Credentials that a developer's own commands need (`GH_TOKEN`, `AWS_*`, `SSH_AUTH_SOCK`…) are not on the list.
pub fn is_stripped(name: &str, remove: &[String], pass: &[String]) -> bool {
    let listed = |names: &[String]| names.iter().any(|listed| listed == name);
    let known = || {
        [PROVIDERS, SEARCH, MESSAGING, SANDBOXES]
            .iter()
            .any(|names| names.contains(&name))
    };
    let ours = || name.starts_with(env::EXOSHELL_PREFIX) || name == env::SUDO_PASSWORD;
    !listed(pass) && (ours() || known() || listed(remove))
}

/// Returns every name that is kept from commands in places with an environment of their own.
pub(crate) fn stripped_names(resolved: &Resolved) -> Vec<&str> {
    let settings = &resolved.terminal;
    [
        PROVIDERS,
        SEARCH,
        MESSAGING,
        SANDBOXES,
        &[env::SUDO_PASSWORD],
    ]
    .into_iter()
    .flatten()
    .copied()
    .chain(settings.env_remove.iter().map(String::as_str))
    .filter(|name| !settings.env_pass.iter().any(|passed| passed == name))
    .collect()
}

/// Returns what every command gets so that nothing waits for a person.
pub(crate) const fn quiet_variables() -> &'static [(&'static str, &'static str)] {
    QUIET
}

/// Returns the environment for commands on this machine, in the order of the names.
///
/// It is the caller's without what is stripped, then what keeps programs from waiting for a person, then `terminal.env`, which wins
/// over both.
pub fn child_environment(
    environment: &Environment,
    resolved: &Resolved,
) -> Vec<(OsString, OsString)> {
    let settings = &resolved.terminal;
    // A name that is not UTF-8 is on no list.
    let stripped = |name: &OsStr| {
        name.to_str()
            .is_some_and(|name| is_stripped(name, &settings.env_remove, &settings.env_pass))
    };
    let inherited = environment.iter().filter(|(name, _)| !stripped(name));
    let mut variables: BTreeMap<OsString, OsString> = inherited
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    for (name, value) in &mut variables {
        // Programs look at a pager variable of their own (`GH_PAGER`, `AWS_PAGER`) before `PAGER`.
        if name.as_encoded_bytes().ends_with(b"_PAGER") {
            *value = "cat".into();
        }
    }
    variables
        .entry("PYTHONIOENCODING".into())
        .or_insert_with(|| "utf-8".into());
    variables.extend(
        QUIET
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    variables.extend(
        settings
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    variables.into_iter().collect()
}

#[cfg(test)]
#[path = "credentials_tests.rs"]
mod tests;

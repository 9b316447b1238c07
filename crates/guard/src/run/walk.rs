//! Lists, pipelines and compound commands.

use std::rc::Rc;

use super::Run;
use super::stream::Stream;
use crate::finding::{Span, Target};
use crate::syntax::{Arm, Body, Command, Item, List, Pipeline, Word};

/// How many rounds of a loop are walked.
const MAX_ROUNDS: usize = 8;

impl Run<'_> {
    /// Walks a list and returns all it prints.
    pub(crate) fn list(&mut self, list: &List) -> Stream {
        let mut output = Stream::silent();
        for item in &list.items {
            let printed = self.item(item);
            output.append(printed);
        }
        output
    }

    fn item(&mut self, item: &Item) -> Stream {
        if item.background {
            self.aside += 1;
            let output = self.subshell(|run| run.pipelines(item));
            self.aside -= 1;
            return output;
        }
        self.pipelines(item)
    }

    fn pipelines(&mut self, item: &Item) -> Stream {
        let mut output = self.pipeline(&item.first);
        for pipeline in &item.rest {
            let printed = self.pipeline(pipeline);
            output.append(printed);
        }
        output
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Stream {
        if pipeline.rest.is_empty() {
            return self.command(&pipeline.first);
        }
        let outer = std::mem::take(&mut self.recursions);
        let mut flowing = self.stdin.clone();
        for command in std::iter::once(&pipeline.first).chain(&pipeline.rest) {
            let output =
                self.subshell(|run| run.reading(flowing.take(), |run| run.command(command)));
            flowing = Some(output);
        }
        if self.recursions > 1 {
            self.report("fork-bomb", pipeline.first.span, Target::None, "");
        }
        self.recursions += outer;
        flowing.unwrap_or_default()
    }

    /// Walks one command with its redirections.
    pub(super) fn command(&mut self, command: &Command) -> Stream {
        if !self.step(2) {
            return Stream::unknown();
        }
        self.here = command.span;
        if let Body::Simple {
            assigns,
            words,
            arrays,
        } = &command.body
        {
            return self.simple(assigns, words, arrays, command);
        }
        let redirected = self.redirects(&command.redirects);
        let stdin = redirected.stdin.clone().or_else(|| self.stdin.clone());
        let output = self.reading(stdin, |run| run.body(&command.body, command.span));
        self.written(&redirected, output)
    }

    fn body(&mut self, body: &Body, span: Span) -> Stream {
        match body {
            Body::Simple { .. } => Stream::silent(),
            Body::Group(list) => self.list(list),
            Body::Subshell(list) => self.subshell(|run| run.list(list)),
            Body::Branches(lists) => {
                let mut output = Stream::silent();
                for list in lists {
                    let printed = self.list(list);
                    output.append(printed);
                }
                output
            }
            Body::Loop { condition, body } => self.repeat(condition, body),
            Body::For { name, words, body } => self.for_loop(name, words.as_deref(), body),
            Body::ForArithmetic { expressions, body } => {
                self.arithmetic(expressions);
                self.list(body)
            }
            Body::Case { word, arms } => self.case(word, arms),
            Body::Function { name, body } => {
                self.state.define(name, body);
                self.leaves_function(name, body, span);
                Stream::silent()
            }
            Body::Test(words) => self.test(words),
            Body::Arithmetic(parts) => {
                self.arithmetic(parts);
                Stream::silent()
            }
            Body::Coprocess(command) => {
                self.aside += 1;
                let output = self.deeper(span, |run| run.subshell(|run| run.command(command)));
                self.aside -= 1;
                output
            }
        }
    }

    /// Walks a loop while its input is known and being read, at least once.
    fn repeat(&mut self, condition: &List, body: &List) -> Stream {
        let mut output = Stream::silent();
        for round in 0..=MAX_ROUNDS {
            if round == MAX_ROUNDS {
                // One more round stands for all that are left.
                self.stdin = self.stdin.take().map(|stream| Stream::from(stream.origin));
            }
            let before = self.remaining_input();
            self.list(condition);
            let printed = self.list(body);
            output.append(printed);
            let after = self.remaining_input();
            if after == before || after.is_none_or(|left| left == 0) {
                break;
            }
        }
        output
    }

    fn remaining_input(&self) -> Option<usize> {
        self.stdin.as_ref()?.text.as_ref().map(String::len)
    }

    fn for_loop(&mut self, name: &str, words: Option<&[Word]>, body: &List) -> Stream {
        let items: Vec<String> = match words {
            Some(words) => self
                .arguments(words)
                .into_iter()
                .map(|argument| argument.text)
                .collect(),
            None => self.state.positional.as_ref().map_or_else(
                || vec![crate::text::UNKNOWN.to_string()],
                |known| known.to_vec(),
            ),
        };
        let mut output = Stream::silent();
        // An empty list would skip the body; it is walked all the same.
        let items = if items.is_empty() {
            vec![crate::text::UNKNOWN.to_string()]
        } else {
            items
        };
        // One more round stands for all that are left.
        let left = (items.len() > MAX_ROUNDS).then(|| crate::text::UNKNOWN.to_string());
        for item in items.into_iter().take(MAX_ROUNDS).chain(left) {
            self.assign(name, item);
            let printed = self.list(body);
            output.append(printed);
        }
        output
    }

    fn case(&mut self, word: &Word, arms: &[Arm]) -> Stream {
        self.single(&word.parts);
        let mut output = Stream::silent();
        for arm in arms {
            for pattern in &arm.patterns {
                self.single(&pattern.parts);
            }
            let printed = self.list(&arm.body);
            output.append(printed);
        }
        output
    }

    fn test(&mut self, words: &[Word]) -> Stream {
        let texts: Vec<String> = words.iter().map(|word| self.single(&word.parts)).collect();
        let compares = texts
            .iter()
            .any(|text| matches!(text.as_str(), "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge"));
        for text in texts {
            if compares {
                self.evaluates(&text);
            } else if text.contains('[') {
                self.expanded_again(&text);
            }
        }
        Stream::silent()
    }

    /// Walks the body of a function with its arguments.
    pub(super) fn call_function(
        &mut self,
        name: &str,
        body: &Rc<Command>,
        arguments: Vec<String>,
        span: Span,
    ) -> Stream {
        if self.calls.iter().any(|call| call == name) {
            self.recursions += 1;
            if self.aside > 0 {
                self.report("fork-bomb", span, Target::None, name);
            }
            return Stream::unknown();
        }
        let positional = self.state.positional.take();
        self.state.set_parameters(arguments);
        let aside = std::mem::take(&mut self.aside);
        self.calls.push(name.to_owned());
        let body = Rc::clone(body);
        // The body may come from another text than the call.
        let output = self.pointing_at(span, |run| run.deeper(span, |run| run.command(&body)));
        self.calls.pop();
        self.aside = aside;
        self.state.positional = positional;
        output
    }
}

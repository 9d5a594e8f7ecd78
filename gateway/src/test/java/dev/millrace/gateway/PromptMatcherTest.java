package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.gateway.TurnPlayer.TurnPrompt;
import dev.millrace.schemas.BranchReason;
import org.junit.jupiter.api.Test;

class PromptMatcherTest {
    private final Session session = Played.session();

    private static String text(int[] tokens) {
        return Played.TOKENIZER.decode(tokens);
    }

    @Test
    void shouldKeepTheSampledTokensWhereAnAgentGoesOn() {
        PlayedTurn first = Played.answer(session, Played.chat("{'role': 'user', 'content': 'hi'}"), "  t" + "h\u0020$");
        // 't' and 'h' were sampled one by one, while the tokenizer would write one token
        assertThat(first.tokens()).doesNotContain(CharacterTokenizer.TH + 1);

        TurnPrompt next = Played.MATCHER.match(
                Played.chat("{'role': 'user', 'content': 'hi'}, {'role': 'assistant', 'content': '  th '},"
                        + " {'role': 'tool', 'content': '42'}"),
                session.turns());

        assertThat(next.parent()).isSameAs(first);
        assertThat(next.tokens()).startsWith(first.tokens());
        assertThat(text(next.context()))
                .as("the template trims, and writes the end, which is there")
                .isEqualTo("tool:42$assistant:");
        assertThat(session.forkOf(next)).isNull();
    }

    @Test
    void shouldWriteTheEndThatThePolicyDidNot() {
        Played.answer(session, Played.chat("{'role': 'user', 'content': 'hi'}"), "cut of");
        TurnPrompt next = Played.MATCHER.match(
                Played.chat("{'role': 'user', 'content': 'hi'}, {'role': 'assistant', 'content': 'cut of'},"
                        + " {'role': 'user', 'content': 'go on'}"),
                session.turns());
        assertThat(text(next.context())).isEqualTo("$user:go on$assistant:");
    }

    @Test
    void shouldBeginABranchWhereEarlierTextWasChangedAndSayWhere() {
        PlayedTurn first = Played.answer(session, Played.chat("{'role': 'user', 'content': 'hi'}"), "yes$");
        TurnPrompt other = Played.MATCHER.match(
                Played.chat("{'role': 'user', 'content': 'hi'}, {'role': 'assistant', 'content': 'no'}"),
                session.turns());

        assertThat(other.parent()).isNull();
        assertThat(other.forkTurn()).isZero();
        assertThat(other.forkPosition()).isEqualTo("user:hi$assistant:".length());
        assertThat(text(other.tokens())).isEqualTo("user:hi$assistant:no$assistant:");
        assertThat(session.forkOf(other)).isEqualTo(BranchReason.EDIT);
        assertThat(first.record().getForkReason()).isNull();
    }

    @Test
    void shouldCallTheSamePromptAgainARetryAndGoOnFromWhicheverIsContinued() {
        AgentCall ask = Played.chat("{'role': 'user', 'content': 'hi'}");
        PlayedTurn first = Played.answer(session, ask, "one$");
        PlayedTurn second = Played.answer(session, ask, "two$");
        assertThat(second.parent()).isNull();
        assertThat(second.record().getForkReason()).isEqualTo(BranchReason.RETRY);

        TurnPrompt next = Played.MATCHER.match(
                Played.chat("{'role': 'user', 'content': 'hi'}, {'role': 'assistant', 'content': 'one'}"),
                session.turns());
        assertThat(next.parent()).isSameAs(first);
        assertThat(session.forkOf(next)).as("not from the newest").isEqualTo(BranchReason.EDIT);
    }

    @Test
    void shouldNotGoOnFromAnAnswerWithoutTextWhereItsPromptComesAgain() {
        AgentCall ask = Played.chat("{'role': 'user', 'content': 'hi'}");
        PlayedTurn empty = Played.answer(session, ask, "$");

        TurnPrompt again = Played.MATCHER.match(ask, session.turns());
        assertThat(again.parent()).isNull();
        assertThat(text(again.tokens())).isEqualTo("user:hi$assistant:");
        assertThat(session.forkOf(again)).isEqualTo(BranchReason.RETRY);

        TurnPrompt next = Played.MATCHER.match(
                Played.chat("{'role': 'user', 'content': 'hi'}, {'role': 'assistant', 'content': ''},"
                        + " {'role': 'user', 'content': 'well'}"),
                session.turns());
        assertThat(next.parent()).isSameAs(empty);
        assertThat(text(next.context())).isEqualTo("user:well$assistant:");
    }

    @Test
    void shouldKnowItsOwnToolCallsAgainAndNoOthers() {
        String tools = "'tools': [{'type': 'function', 'function': {'name': 'add'}}]";
        PlayedTurn first = Played.answer(
                session,
                Played.call(true, "{'messages': [{'role': 'user', 'content': '1+2'}], " + tools + "}"),
                "I add.\n<tool_call>\n{\"name\": \"add\",  \"arguments\": {\"a\": 1}}\n</tool_call>$");
        assertThat(first.answer().content()).isEqualTo("I add.\n");
        assertThat(first.answer().calls()).hasSize(1);
        String id = first.answer().callPrefix() + 0;

        String rest = ", 'type': 'function', 'function': {'name': 'add', 'arguments': '{\\'a\\':1}'}}]},"
                + " {'role': 'tool', 'tool_call_id': 'x', 'content': '3'}], " + tools + "}";
        String head = "{'messages': [{'role': 'user', 'content': '1+2'}, {'role': 'assistant', 'content': 'I add.\\n',"
                + " 'tool_calls': [{'id': '";
        TurnPrompt next = Played.MATCHER.match(Played.call(true, head + id + "'" + rest), session.turns());
        assertThat(next.parent()).isSameAs(first);
        assertThat(text(next.context())).isEqualTo("tool:3$assistant:");

        TurnPrompt changed = Played.MATCHER.match(
                Played.call(true, head + id + "'" + rest.replace("{\\'a\\':1}", "{\\'a\\':2}")), session.turns());
        assertThat(changed.parent()).isNull();
    }

    @Test
    void shouldGoOnByTokenIdsAndByTextOfCompletions() {
        PlayedTurn first = Played.answer(session, Played.call(false, "{'prompt': [97, 98]}"), "cd");
        TurnPrompt byIds =
                Played.MATCHER.match(Played.call(false, "{'prompt': [97, 98, 99, 100, 101]}"), session.turns());
        assertThat(byIds.parent()).isSameAs(first);
        assertThat(byIds.context()).containsExactly(101);

        PlayedTurn text =
                Played.answer(session, Played.call(false, "{'prompt': 'Think', 'stop': ['Obs:']}"), "act Obs:");
        assertThat(text.record().getText()).isEqualTo("act ");
        TurnPrompt byText = Played.MATCHER.match(Played.call(false, "{'prompt': 'Thinkact Obs: 42'}"), session.turns());
        assertThat(byText.parent()).isSameAs(text);
        assertThat(text(byText.context())).isEqualTo(" 42");

        assertThatThrownBy(() -> Played.MATCHER.match(Played.call(false, "{'prompt': [97, 301]}"), session.turns()))
                .isInstanceOf(RefusedCallException.class)
                .hasMessage("token 301 at 1 is not among the 301 of the vocabulary");
    }

    @Test
    void shouldRefuseATextByItsLengthBeforeItIsEncoded() {
        assertThatThrownBy(() -> Played.MATCHER.match(
                        Played.call(false, "{'prompt': '" + "a".repeat(1025) + "'}"), session.turns()))
                .isInstanceOf(RefusedCallException.class)
                .hasMessage(
                        "the prompt has 1025 characters, and one that fits into 512 tokens (generator.capacity_tokens) has at"
                                + " most 1024; shorten it");
        assertThatThrownBy(() -> Played.MATCHER.match(
                        Played.chat("{'role': 'user', 'content': '" + "a".repeat(1025) + "'}"), session.turns()))
                .isInstanceOf(RefusedCallException.class)
                .hasMessageContaining("shorten it");
    }
}

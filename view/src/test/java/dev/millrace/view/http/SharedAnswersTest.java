package dev.millrace.view.http;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.view.http.Answers.SharedAnswers;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class SharedAnswersTest {
    private long now;
    private int made;
    private final SharedAnswers answers = new SharedAnswers(() -> now);

    private String ask(String key, long version) throws Exception {
        return answers.get(key, version, 1000, () -> "answer " + ++made);
    }

    @Test
    void shouldMakeAnAnswerOnceForAllWhoAsk() throws Exception {
        assertThat(ask("a/steps", 1)).isEqualTo("answer 1");
        assertThat(ask("a/steps", 1)).isEqualTo("answer 1");
        assertThat(ask("b/steps", 1)).isEqualTo("answer 2");
        assertThat(made).isEqualTo(2);
    }

    @Test
    void shouldMakeItAgainOnceWhatItIsMadeOfHasChangedAndItIsNotQuiteNew() throws Exception {
        assertThat(ask("a/ledger", 1)).isEqualTo("answer 1");
        assertThat(ask("a/ledger", 2)).as("a moment later").isEqualTo("answer 1");
        now += TimeUnit.SECONDS.toNanos(1);
        assertThat(ask("a/ledger", 1)).as("nothing has changed").isEqualTo("answer 1");
        assertThat(ask("a/ledger", 2)).isEqualTo("answer 2");
    }

    @Test
    void shouldMakeItAgainAfterAWhileWhereItChangesByItself() throws Exception {
        assertThat(ask("a/now", SharedAnswers.NO_VERSION)).isEqualTo("answer 1");
        assertThat(ask("a/now", SharedAnswers.NO_VERSION)).isEqualTo("answer 1");
        now += TimeUnit.SECONDS.toNanos(1);
        assertThat(ask("a/now", SharedAnswers.NO_VERSION)).isEqualTo("answer 2");
    }
}

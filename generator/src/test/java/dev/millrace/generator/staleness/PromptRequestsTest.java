package dev.millrace.generator.staleness;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.api.environment.Task;
import dev.millrace.generator.environment.IncPrompts;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.run.RunIdentity;
import org.junit.jupiter.api.Test;

class PromptRequestsTest {
    private static final Task TASK = IncPrompts.defaults().task();
    private static final RequestName FIFTH = RequestName.first(2, 5);

    private static PromptRequest made(RequestName name, long atMs, SamplingConfig sampling, boolean recordsRouting) {
        return new PromptRequests(new RunIdentity("run", 2, "policy"), TASK, sampling, recordsRouting)
                .of(name.groupId(), name.ordinal(), TASK.prompts().prompt(7, name.prompt()), 4, 3, atMs);
    }

    private static PromptRequest made(RequestName name, long atMs) {
        return made(name, atMs, SamplingConfig.defaults(), false);
    }

    @Test
    void shouldAskForTheSameUnderTheSameName() {
        PromptRequest first = made(FIFTH, 100);
        PromptRequest again = made(FIFTH, 900);
        assertThat(again.getReleasedAtMs()).isEqualTo(900);
        again.put(PromptRequest.SCHEMA$.getField("released_at_ms").pos(), 100L);
        assertThat(again).isEqualTo(first);
    }

    @Test
    void shouldAskForItsPromptOnceMoreUnderAnotherName() {
        PromptRequest first = made(FIFTH, 100);
        PromptRequest again = made(new RequestName(2, 40, 5, 1), 100);
        assertThat(again.getGroupId()).isEqualTo("2-40-again-5-1");
        assertThat(again.getOrdinal()).isEqualTo(40);
        assertThat(again.getPromptTokens()).isEqualTo(first.getPromptTokens());
        assertThat(again.getEnvironmentState()).isEqualTo(first.getEnvironmentState());
        assertThat(made(RequestName.first(2, 40), 100).getPromptTokens()).isNotEqualTo(first.getPromptTokens());
    }

    @Test
    void shouldSayWhoseItIsAndHowItIsToBeSampled() {
        PromptRequest request = made(FIFTH, 100, new SamplingConfig(0.5, 3, 0.9, 0.1, 0, 11, true, 2), true);
        assertThat(request.getRunId()).isEqualTo("run");
        assertThat(request.getEpoch()).isEqualTo(2);
        assertThat(request.getGroupId()).isEqualTo("2-5");
        assertThat(request.getSamples()).isEqualTo(4);
        assertThat(request.getAdmittedVersion()).isEqualTo(3);
        assertThat(request.getTokenizerHash()).isEqualTo(TASK.tokenizer().hash());
        assertThat(request.getSampling().getTemperature()).isEqualTo(0.5);
        assertThat(request.getSampling().getTopK()).isEqualTo(3);
        assertThat(request.getSampling().getTopP()).isEqualTo(0.9);
        assertThat(request.getSampling().getMinP()).isEqualTo(0.1);
        assertThat(request.getSampling().getSeed()).isEqualTo(11);
        assertThat(request.getSampling().getKeepSamplingMask()).isTrue();
        assertThat(request.getSampling().getTopLogProbs()).isEqualTo(2);
        assertThat(request.getSampling().getRecordRouting()).isTrue();
        assertThat(request.getSampling().getMaxTokens())
                .as("0 is as many as the task can use")
                .isEqualTo(TASK.responseTokens());
        SamplingConfig three = new SamplingConfig(1, 0, 1, 0, 3, 1, false, 0);
        assertThat(made(FIFTH, 100, three, false).getSampling().getMaxTokens()).isEqualTo(3);
    }
}

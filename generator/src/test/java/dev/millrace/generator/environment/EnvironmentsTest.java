package dev.millrace.generator.environment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.api.catalogue.Catalogue;
import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Task;
import dev.millrace.api.environment.TaskSettings;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.api.plugin.Kind;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.packed.PackedInts;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class EnvironmentsTest {

    @Test
    void shouldKnowTheEnvironmentOfEveryTask() {
        List<Kind> tasks = Catalogue.current().kinds(TaskSettings.class);
        assertThat(tasks).extracting(Kind::name).containsExactly("inc", "sort", "guess", "text");
        for (Kind kind : tasks.subList(0, 3)) { // the last one is made of files
            Task task = ((TaskSettings) kind.defaults()).task();
            assertThat(task.name()).isEqualTo(kind.name());
            assertThat(Environments.builtIn().named(task.environment().name()).getClass())
                    .isEqualTo(task.environment().getClass());
            Prompt prompt = task.prompts().prompt(3, 14);
            assertThat(prompt.tokens().length).isLessThanOrEqualTo(task.promptTokens());
            assertThat(task.environment().begin(prompt.environmentState())).isNotNull();
        }
    }

    @Test
    void shouldNeedTwelvePositionsForTheDefaultTask() {
        assertThat(IncPrompts.defaults().task().capacityTokens()).isEqualTo(12);
    }

    @Test
    void shouldNameTheNearestEnvironmentOfAnUnknownOne() {
        assertThatThrownBy(() -> Environments.builtIn().named("gues"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("unknown environment: 'gues'; did you mean guess? Known are fixed-answer, guess"
                        + "; name a plug-in's environment in environments, or in its task");
    }

    @Test
    void shouldRefuseTwoEnvironmentsOfOneName() {
        assertThatThrownBy(() -> new Environments(List.of(new Guess(), new Guess())))
                .hasMessageContaining("two environments are named guess");
    }

    @Test
    void shouldGiveEverySymbolATokenOfItsOwn() {
        assertThat(Symbols.names()).hasSize(16).doesNotHaveDuplicates();
        assertThat(Symbols.names().get(Symbols.digit(7))).isEqualTo("7");
        assertThat(Symbols.names().get(Symbols.HIGHER)).isEqualTo("<higher>");
        assertThat(Symbols.names().get(Symbols.FOUND)).isEqualTo("<found>");
        assertThat(Symbols.digitOf(Symbols.digit(9))).isEqualTo(9);
        assertThat(Symbols.digitOf(Symbols.SEPARATOR)).isEqualTo(-1);
        assertThat(Symbols.digitOf(Symbols.HIGHER)).isEqualTo(-1);
    }

    @Test
    void shouldRefuseARewardThatIsNoNumber() {
        assertThatThrownBy(() -> new VerifiedReward(Double.NaN, Map.of())).hasMessageContaining("must be finite: NaN");
    }

    @Test
    void shouldServeTheEnvironmentOfATaskBesideOthers() {
        Task task = GuessPrompts.defaults().task();
        assertThat(Environments.of(task, List.of(), OwnVerdict.defaults()).named("guess"))
                .isEqualTo(new Guess());
        assertThat(Environments.of(task, List.of(new Guess(), new FixedAnswer()), OwnVerdict.defaults())
                        .named("fixed-answer"))
                .isEqualTo(new FixedAnswer());
        assertThatThrownBy(() ->
                        Environments.of(task, List.of(), OwnVerdict.defaults()).named("fixed-answer"))
                .hasMessageContaining("unknown environment: 'fixed-answer'");
    }

    @Test
    void shouldRewardResponsesByTheChosenFunction() {
        RewardFunction length = response -> new VerifiedReward(
                response.response().length()
                        + 10.0 * response.promptTokens().length
                        + response.verified().reward(),
                Map.of());
        Environments environments = new Environments(List.of(new FixedAnswer()), length, Symbols.tokenizer());
        PromptRequest request = PromptRequest.newBuilder()
                .setRunId("run")
                .setEpoch(0)
                .setGroupId("0-3")
                .setOrdinal(3)
                .setEnvironment("fixed-answer")
                .setEnvironmentState("42")
                .setPromptTokens(PackedInts.of(new int[] {0, 1, 2}))
                .setSamples(1)
                .setSampling(new SamplingParameters(1.0, 0, 1.0, 2, 7L, false, 0, 0.0, false))
                .setTokenizerHash("vocabulary")
                .setAdmittedVersion(0)
                .setReleasedAtMs(1)
                .build();
        Environment playing = environments.playing(request);
        assertThat(playing.name()).isEqualTo("fixed-answer");
        Episode episode = playing.begin("42");
        WrittenResponse response = new WrittenResponse();
        response.policy(Symbols.digit(4), episode);
        assertThat(response.policy(Symbols.digit(0), episode)).isSameAs(StepResult.END);
        assertThat(episode.verify(response).reward()).isEqualTo(2 + 30 + 0.5);
    }
}

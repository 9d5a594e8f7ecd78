package dev.millrace.runtime.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class RecordedConfigurationTest {
    private static final String WHERE = "the configuration of run r on its log";
    private static final String WAY_OUT = "leave the key out";

    private static ConfigLayers layers(String... settings) {
        ConfigLayers layers = new ConfigLayers().set("run.id=r").set("run.bootstrap_servers=\"kafka:9092\"");
        for (String setting : settings) {
            layers.set(setting);
        }
        return layers;
    }

    private static MillraceConfig config(String... settings) {
        return layers(settings).resolve();
    }

    private static RecordedConfiguration recorded(String... settings) {
        return RecordedConfiguration.parse(
                RecordedConfiguration.of(config(settings)).text(), WHERE);
    }

    @Test
    void shouldRecordWhatTheRunIsAndNothingOfTheMachine() {
        String text = RecordedConfiguration.of(config(
                        "kafka.ssl.truststore.password=hunter2",
                        "kafka.sasl.jaas.config=\"${env:JAAS}\"",
                        "run.schema_registry_url=\"http://bob:hunter2@registry:8081\"",
                        "run.device=\"cuda:0\"",
                        "generator.id=g7",
                        "topics.partitions=6"))
                .text();
        assertThat(text)
                .contains("id: r", "topic_prefix: millrace.r.", "partitions: 6", "learning_rate: 0.002")
                .doesNotContain("hunter2", "JAAS", "kafka:", "registry", "cuda", "g7", "broker:", "bootstrap");
    }

    @Test
    void shouldGiveTheRunsConfigurationToAProcessThatKnowsItsNameOnly() {
        RecordedConfiguration recorded =
                recorded("topology.batch.sequences=64", "admission.batch_sequences=64", "generator.id=g7");
        MillraceConfig elsewhere = new ConfigLayers()
                .begunWith(recorded.tree())
                .set("run.bootstrap_servers=\"elsewhere:9092\"")
                .set("scorer.id=s2")
                .resolve();
        assertThat(elsewhere.topology().batch().sequences()).isEqualTo(64);
        assertThat(elsewhere.run().id()).isEqualTo("r");
        assertThat(elsewhere.generator().id()).as("of a process").isEqualTo("generator-0");
        recorded.require(elsewhere, WAY_OUT);
    }

    @Test
    void shouldRefuseAKeyThatContradicts() {
        assertThatThrownBy(() -> recorded().require(config("admission.eta=1"), WAY_OUT))
                .isInstanceOf(ConfigException.class)
                .hasMessage("admission.eta is 2 in " + WHERE
                        + " and 1 is requested; all roles of a run share one configuration, so leave the key out");
        assertThatThrownBy(() -> recorded().require(config("algorithm.length_guard=surge"), WAY_OUT))
                .hasMessageStartingWith("algorithm.length_guard.kind is off in " + WHERE + " and surge is requested;");
        assertThatThrownBy(() -> recorded("run.topic_prefix=a.").require(config(), WAY_OUT))
                .hasMessageStartingWith("run.topic_prefix is a. in " + WHERE + " and millrace.r. is requested;");
    }

    @Test
    void shouldLetAProcessChooseWhatIsItsOwn() {
        recorded()
                .require(
                        config(
                                "generator.slots=8",
                                "goal.mean_reward=0.1",
                                "learner.max_steps=7",
                                "topology.runtime.threads=4",
                                "kafka.linger.ms=3",
                                "run.device=\"cuda:0\""),
                        WAY_OUT);
    }

    @Test
    void shouldSayWhatChangesWhenARunGoesOn() {
        assertThat(recorded().changes(config("admission.eta=1", "goal.mean_reward=0.1")))
                .containsExactlyInAnyOrder(
                        "admission.eta was 2 and is 1 from here on",
                        "algorithm.staleness.max_versions was 2 and is 1 from here on");
        assertThat(recorded().changes(config())).isEmpty();
        assertThatThrownBy(() -> recorded().changes(config("model.layers=3")))
                .hasMessage("model.layers is 2 in " + WHERE + " and 3 is requested; it cannot change once a run has"
                        + " started, so leave it unchanged, or start another run");
    }

    @Test
    void shouldNameWhereItCannotBeRead() {
        assertThatThrownBy(() -> RecordedConfiguration.parse("lerner:\n  max_steps: 3\n", WHERE))
                .isInstanceOf(ConfigException.class)
                .hasMessage(WHERE + ": unknown key lerner; did you mean learner?");
    }

    @Test
    void shouldTakeAKeyThatIsNewerThanTheRecordAtItsDefault() {
        RecordedConfiguration older = RecordedConfiguration.parse("run: {id: r, topic_prefix: millrace.r.}\n", WHERE);
        older.require(config(), WAY_OUT);
        assertThatThrownBy(() -> older.require(config("admission.eta=1"), WAY_OUT))
                .hasMessageStartingWith("admission.eta is 2 in ");
    }

    @Test
    void shouldKnowWhetherAnybodySaysWhatToRun() {
        assertThat(layers("generator.id=g7", "kafka.linger.ms=3").configuresRun())
                .isFalse();
        assertThat(layers("task=sort").configuresRun()).isTrue();
        assertThat(layers("algorithm.kl=in_loss").configuresRun()).isTrue();
        assertThat(layers("goal.mean_reward=0.4").configuresRun()).isFalse();
        assertThat(layers("gaol.mean_reward=0.4").configuresRun())
                .as("it is refused at once")
                .isTrue();
    }
}

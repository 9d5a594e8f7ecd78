package dev.millrace.policy.huggingface;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.policy.huggingface.FamiliesTest.Model;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/**
 * Compares the families that llama.cpp supports with its recorded results; {@code src/test/foreign} describes the
 * recording.
 */
class ForeignEngineTest {
    private static final double WITHIN = 2e-5;
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Models that both compute alike, by their place in {@link FamiliesTest#MODELS}, with the tokens up to which they do. */
    static final Map<String, Integer> COMPARED = compared();

    static final Iterable<String> NAMES = COMPARED.keySet();

    @TempDir
    Path directory;

    private static Map<String, Integer> compared() {
        Map<String, Integer> compared = new LinkedHashMap<>();
        for (int place : new int[] {0, 1, 2, 3, 4, 6, 9}) {
            compared.put(name(place), Integer.MAX_VALUE);
        }
        compared.put(name(8), 6); // its window, which llama.cpp does not have
        return compared;
    }

    private static String name(int place) {
        return "%02d".formatted(place);
    }

    private static Model model(String name) {
        return FamiliesTest.MODELS.get(Integer.parseInt(name));
    }

    @ParameterizedTest
    @FieldSource("NAMES")
    void shouldScoreWhatLlamaCppScores(String name) throws IOException {
        FamiliesTest.written(model(name), directory);
        Weights weights = new CheckpointDirectory(directory).load();
        int[][] tokens = FamiliesTest.tokens(weights.shape());
        JsonNode expected = recorded().path("models").path(name);
        SequenceBatch batch = FamiliesTest.batch(tokens);
        int compared = 0;
        try (ScoringSession session = new ScoringSession(Engine.cpu(), weights.shape(), 64)) {
            float[] scores = session.score(weights, batch, FamiliesTest.ones()).logProbs();
            for (int s = 0; s < tokens.length; s++) {
                for (int t = 1; t < Math.min(tokens[s].length, COMPARED.get(name) + 1L); t++) {
                    assertThat((double) scores[batch.offset(s) + t - 1])
                            .as("%s, sequence %d, token %d", model(name), s, t)
                            .isCloseTo(expected.path(s).path(t - 1).doubleValue(), within(WITHIN));
                    compared++;
                }
            }
        }
        assertThat(compared).isGreaterThan(20);
    }

    /** What the recorded numbers are made from. */
    @Test
    @EnabledIfSystemProperty(named = "foreign.write", matches = ".+")
    void shouldWriteTheModelsForTheOtherEngine() throws IOException {
        for (String name : NAMES) {
            Path model = Path.of(System.getProperty("foreign.write"), name);
            FamiliesTest.written(model(name), model);
            int[][] tokens =
                    FamiliesTest.tokens(new CheckpointDirectory(model).load().shape());
            JSON.writeValue(model.resolve("tokens.json").toFile(), tokens);
        }
    }

    private static JsonNode recorded() throws IOException {
        try (InputStream in = ForeignEngineTest.class.getResourceAsStream("llama-cpp.json")) {
            return JSON.readTree(in);
        }
    }
}

package dev.millrace.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.Test;

class ShapeTextTest {
    private static final String TEXT = "{\"vocab_size\":11,\"hidden_size\":8,\"num_hidden_layers\":1,"
            + "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":4,\"intermediate_size\":12,"
            + "\"max_position_embeddings\":32,\"rope_theta\":10000.0,\"rms_norm_eps\":1.0E-6,"
            + "\"tie_word_embeddings\":true,\"attention_bias\":true}";

    @Test
    void shouldWriteTheNamesOfAHuggingFaceConfig() {
        assertThat(ShapeText.of(SmallDecoder.SHAPE)).isEqualTo(TEXT);
    }

    @Test
    void shouldReadBackWhatItWrites() {
        assertThat(ShapeText.parse(TEXT)).isEqualTo(SmallDecoder.SHAPE);
    }

    @Test
    void shouldNameTheKeyThatIsMissingOrOfAnotherKind() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> ShapeText.parse(TEXT.replace("head_dim", "head_size")))
                .withMessageStartingWith("a decoder's shape needs a number head_dim");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> ShapeText.parse(TEXT.replace(":12,", ":12.5,")))
                .withMessage("a decoder's shape needs a whole number intermediate_size: 12.5");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> ShapeText.parse(TEXT.replace(":true}", ":1}")))
                .withMessageStartingWith("a decoder's shape needs true or false as attention_bias");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> ShapeText.parse("{"))
                .withMessage("a decoder's shape must be a JSON object: {");
    }
}

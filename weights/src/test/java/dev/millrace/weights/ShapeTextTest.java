package dev.millrace.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.DecoderTraits;
import dev.millrace.policy.decoder.Experts;
import dev.millrace.policy.decoder.RopeScaling;
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

    @Test
    void shouldKeepWhatIsNotAsInThePlainDecoder() {
        for (DecoderTraits traits : new DecoderTraits[] {
            new DecoderTraits(new RopeScaling.Yarn(4, 24, 9, 2, 1.25, false), true, true, true, 6, 1),
            new DecoderTraits(new RopeScaling.Llama3(8, 1, 4, 64), false, true, false, 0, 0),
            new DecoderTraits(new RopeScaling.Linear(2.5), false, false, false, 5, 0),
            new DecoderTraits(new RopeScaling.None(), false, false, true, 0, 0, new Experts(8, 2, 12, true)),
            new DecoderTraits(new RopeScaling.None(), false, false, true, 0, 0, new Experts(4, 1, 12, false))
        }) {
            DecoderShape shape = new DecoderShape(11, 16, 2, 4, 2, 6, 20, 96, 100, 1e-6, true, true).with(traits);
            assertThat(ShapeText.parse(ShapeText.of(shape))).isEqualTo(shape);
        }
        DecoderShape critic = SmallDecoder.SHAPE.withValueHead(true);
        assertThat(ShapeText.of(critic)).isEqualTo(TEXT.replace("}", ",\"value_head\":true}"));
        assertThat(ShapeText.parse(ShapeText.of(critic))).isEqualTo(critic);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> ShapeText.parse(TEXT.replace("}", ",\"rope_scaling\":{\"rope_type\":\"su\"}}")))
                .withMessageContaining("rotary positions of type su are not supported");
    }

    @Test
    void shouldSayALimitOfTensorsWhereItCutsOneAndOnlyThere() {
        DecoderShape shape = SmallDecoder.SHAPE;
        DecoderShape cut = shape.within(40);
        assertThat(ShapeText.of(cut)).endsWith(",\"max_tensor_elements\":40}");
        assertThat(ShapeText.parse(ShapeText.of(cut))).isEqualTo(cut);
        assertThat(ShapeText.of(shape.within(96)))
                .isEqualTo(ShapeText.of(shape))
                .doesNotContain("max_tensor");
        DecoderShape large = new DecoderShape(152_064, 3584, 1, 28, 4, 128, 8, 32, 1e6, 1e-6, false, true);
        assertThat(ShapeText.of(large)).contains("\"max_tensor_elements\":536870911");
        assertThat(ShapeText.parse(ShapeText.of(large))).isEqualTo(large);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> ShapeText.parse(ShapeText.of(cut).replace(":40}", ":0}")))
                .withMessageStartingWith("max_tensor_elements must be at least 1");
    }
}

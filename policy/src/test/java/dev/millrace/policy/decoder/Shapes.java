package dev.millrace.policy.decoder;

import java.util.List;

/** Small decoders that between them take every branch of the description. */
public final class Shapes {
    /** The size of the default task. */
    public static final DecoderShape DEFAULT_TASK =
            new DecoderShape(16, 64, 2, 4, 4, 16, 128, 64, 100, 1e-6, true, false);

    public static final DecoderShape TIED = new DecoderShape(11, 16, 2, 4, 4, 6, 20, 96, 100, 1e-6, true, false);
    public static final DecoderShape GROUPED_UNTIED_BIASED =
            new DecoderShape(13, 20, 2, 6, 2, 4, 28, 96, 10_000, 1e-5, false, true);
    public static final DecoderShape ONE_KEY_HEAD = new DecoderShape(7, 12, 1, 3, 1, 8, 10, 96, 500, 1e-6, true, true);
    /** Norms of queries and keys, biases everywhere, a window in the second layer, stretched positions: all traits at once. */
    public static final DecoderShape ALL_TRAITS = new DecoderShape(9, 16, 2, 4, 2, 6, 20, 96, 100, 1e-6, false, true)
            .with(new DecoderTraits(new RopeScaling.Yarn(4, 24, 3, 1, 1.2, true), true, true, true, 6, 1));

    /** Four experts, three of them per token, in both layers. */
    public static final DecoderShape EXPERTS = new DecoderShape(11, 16, 2, 4, 2, 6, 20, 96, 100, 1e-6, false, false)
            .with(new DecoderTraits(new RopeScaling.None(), false, false, true, 0, 0, new Experts(4, 3, 12, true)));

    /** With a critic's head next to a tied one. */
    public static final DecoderShape VALUE_HEAD = TIED.withValueHead(true);

    public static final List<DecoderShape> VARIED =
            List.of(TIED, GROUPED_UNTIED_BIASED, ONE_KEY_HEAD, ALL_TRAITS, EXPERTS, VALUE_HEAD);

    private Shapes() {}
}

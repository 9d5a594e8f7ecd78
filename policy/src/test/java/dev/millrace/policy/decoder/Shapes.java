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
    public static final List<DecoderShape> VARIED = List.of(TIED, GROUPED_UNTIED_BIASED, ONE_KEY_HEAD);

    private Shapes() {}
}

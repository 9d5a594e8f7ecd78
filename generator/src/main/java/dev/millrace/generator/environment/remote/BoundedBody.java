package dev.millrace.generator.environment.remote;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.http.HttpResponse.BodySubscriber;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/** The bytes of an answer, up to a limit; what is longer is not read to its end. */
final class BoundedBody implements BodySubscriber<byte[]> {

    /** The answer is longer than it may be. */
    static final class TooLongException extends IOException {
        private static final long serialVersionUID = 1;

        TooLongException(int limit) {
            super("its answer is longer than " + limit + " bytes (answer_bytes)");
        }
    }

    private final int limit;
    private final ByteArrayOutputStream read = new ByteArrayOutputStream();
    private final CompletableFuture<byte[]> body = new CompletableFuture<>();
    private Flow.@Nullable Subscription subscription;

    BoundedBody(int limit) {
        this.limit = limit;
    }

    @Override
    public CompletionStage<byte[]> getBody() {
        return body;
    }

    @Override
    public void onSubscribe(Flow.Subscription begun) {
        subscription = begun;
        begun.request(Long.MAX_VALUE);
    }

    @Override
    public void onNext(List<ByteBuffer> buffers) {
        for (ByteBuffer buffer : buffers) {
            if (body.isDone()) {
                return;
            }
            if (read.size() + buffer.remaining() > limit) {
                if (subscription != null) {
                    subscription.cancel();
                }
                body.completeExceptionally(new TooLongException(limit));
                return;
            }
            byte[] bytes = new byte[buffer.remaining()];
            buffer.get(bytes);
            read.writeBytes(bytes);
        }
    }

    @Override
    public void onError(Throwable failure) {
        body.completeExceptionally(failure);
    }

    @Override
    public void onComplete() {
        body.complete(read.toByteArray());
    }
}

package dev.millrace.generator.environment.remote;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.concurrent.CompletableFuture;

/** Answers questions. Thread-safe; asking returns at once. */
interface Partner {

    /** The answer; completed with a {@link PartnerException} if there is none. Cancelling it gives the question up. */
    CompletableFuture<ObjectNode> ask(Question question);
}

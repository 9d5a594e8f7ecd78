package dev.millrace.schemas.serde;

import org.apache.avro.util.ClassSecurityValidator;

/**
 * Lets Avro make instances of the generated records.
 *
 * <p>Avro makes no instance of a class that is named in a schema unless the class is trusted, because a schema
 * may come from anywhere. We trust exactly the package of the generated records, in addition to whatever was
 * trusted before.
 */
final class TrustedRecords {
    private static final String PACKAGE = "dev.millrace.schemas";

    static {
        ClassSecurityValidator.setGlobal(ClassSecurityValidator.composite(
                ClassSecurityValidator.getGlobal(), type -> PACKAGE.equals(type.getPackageName())));
    }

    private TrustedRecords() {}

    /** Has an effect once per JVM, when this class is loaded. */
    static void trust() {}
}

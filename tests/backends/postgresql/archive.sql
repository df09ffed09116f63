SELECT pg_catalog.set_config('search_path', '', false);
CREATE SCHEMA archived;
CREATE FUNCTION archived.locus_change_items(moment timestamp with time zone, names text[], scopes text[], paths text[], keys text[], conditions text[], expiries text[], lengths text[], metadatas text[], documents text[], texts text[], checksums text[]) RETURNS TABLE(conflict boolean, number bigint, result bigint)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
  given record;
  found_version bigint;
  is_there boolean;
  results bigint[] := array_fill(0::bigint, ARRAY[cardinality(names)]);
BEGIN
  FOR given IN
    SELECT numbered.* FROM (
      SELECT g.name, coalesce(g.scope, scopes[1])::uuid AS scope,
        coalesce(g.path, paths[1]) || chr(1) AS path, g.key, g.condition::bigint,
        g.expires_at::timestamptz, g.length::integer,
        coalesce(g.metadata::jsonb, '{}') AS metadata, g.value::jsonb,
        coalesce(g.words, '')::tsvector AS words, g.checksum::bigint, g.number,
        nextval('"archived"."locus_revisions"') AS revision
      FROM unnest(names, scopes, paths, keys, conditions, expiries, lengths, metadatas,
        documents, texts, checksums) WITH ORDINALITY
        AS g (name, scope, path, key, condition, expires_at, length, metadata, value,
          words, checksum, number)) AS numbered
    ORDER BY numbered.name COLLATE "C", numbered.number
  LOOP
    LOOP
      SELECT CASE WHEN i.expires_at <= moment THEN 0 ELSE i.version END INTO found_version
      FROM "archived"."locus_items" AS i WHERE i.name = given.name FOR UPDATE;
      is_there := FOUND;
      found_version := coalesce(found_version, 0);
      IF given.condition <> found_version THEN
        results[given.number] := found_version;
        RAISE EXCEPTION USING ERRCODE = 'LM001', MESSAGE = given.number::text;
      END IF;
      IF given.value IS NULL THEN
        IF is_there THEN
          DELETE FROM "archived"."locus_items" AS i WHERE i.name = given.name;
        END IF;
        results[given.number] := (found_version > 0)::integer;
        EXIT;
      ELSIF is_there THEN
        UPDATE "archived"."locus_items" AS i SET
          version = found_version + 1, revision = given.revision,
          created_at = CASE found_version WHEN 0 THEN moment ELSE i.created_at END,
          updated_at = CASE found_version WHEN 0 THEN moment
            ELSE greatest(i.updated_at, moment) END,
          expires_at = given.expires_at, length = given.length,
          metadata = given.metadata, value = given.value, words = given.words,
          checksum = given.checksum
        WHERE i.name = given.name;
      ELSE
        INSERT INTO "archived"."locus_items" (name, scope, version, revision, created_at, updated_at, expires_at,
          length, path, key, metadata, value, words, checksum)
        VALUES (given.name, given.scope, 1, given.revision, moment, moment, given.expires_at,
          given.length, given.path, given.key, given.metadata, given.value, given.words,
          given.checksum)
        ON CONFLICT DO NOTHING;
        CONTINUE WHEN NOT FOUND;
      END IF;
      results[given.number] := found_version + 1;
      EXIT;
    END LOOP;
  END LOOP;
  RETURN QUERY SELECT false, r.number, r.result
    FROM unnest(results) WITH ORDINALITY AS r (result, number) ORDER BY r.number;
EXCEPTION WHEN SQLSTATE 'LM001' THEN
  RETURN QUERY SELECT true, SQLERRM::bigint, results[SQLERRM::bigint];
END
$$;
CREATE FUNCTION archived.locus_change_vectors(moment timestamp with time zone, names text[], scopes text[], paths text[], keys text[], conditions text[], expiries text[], lengths text[], metadatas text[], documents text[], texts text[], checksums text[], embeddings text[], vector_checksums text[]) RETURNS TABLE(conflict boolean, number bigint, result bigint)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
  given record;
  found_version bigint;
  is_there boolean;
  results bigint[] := array_fill(0::bigint, ARRAY[cardinality(names)]);
  direction "archived"."locus_vectors".embedding%TYPE;
BEGIN
  FOR given IN
    SELECT numbered.* FROM (
      SELECT g.name, coalesce(g.scope, scopes[1])::uuid AS scope,
        coalesce(g.path, paths[1]) || chr(1) AS path, g.key, g.condition::bigint,
        g.expires_at::timestamptz, g.length::integer,
        coalesce(g.metadata::jsonb, '{}') AS metadata, g.value::jsonb,
        coalesce(g.words, '')::tsvector AS words, g.checksum::bigint, g.number, g.embedding, g.vector_checksum::bigint,
        nextval('"archived"."locus_revisions"') AS revision
      FROM unnest(names, scopes, paths, keys, conditions, expiries, lengths, metadatas,
        documents, texts, checksums, embeddings, vector_checksums) WITH ORDINALITY
        AS g (name, scope, path, key, condition, expires_at, length, metadata, value,
          words, checksum, embedding, vector_checksum, number)) AS numbered
    ORDER BY numbered.name COLLATE "C", numbered.number
  LOOP
    LOOP
      SELECT CASE WHEN i.expires_at <= moment THEN 0 ELSE i.version END INTO found_version
      FROM "archived"."locus_items" AS i WHERE i.name = given.name FOR UPDATE;
      is_there := FOUND;
      found_version := coalesce(found_version, 0);
      IF given.condition <> found_version THEN
        results[given.number] := found_version;
        RAISE EXCEPTION USING ERRCODE = 'LM001', MESSAGE = given.number::text;
      END IF;
      IF given.value IS NULL THEN
        IF is_there THEN
          DELETE FROM "archived"."locus_items" AS i WHERE i.name = given.name;
        END IF;
        results[given.number] := (found_version > 0)::integer;
        EXIT;
      ELSIF is_there THEN
        UPDATE "archived"."locus_items" AS i SET
          version = found_version + 1, revision = given.revision,
          created_at = CASE found_version WHEN 0 THEN moment ELSE i.created_at END,
          updated_at = CASE found_version WHEN 0 THEN moment
            ELSE greatest(i.updated_at, moment) END,
          expires_at = given.expires_at, length = given.length,
          metadata = given.metadata, value = given.value, words = given.words,
          checksum = given.checksum
        WHERE i.name = given.name;
      ELSE
        INSERT INTO "archived"."locus_items" (name, scope, version, revision, created_at, updated_at, expires_at,
          length, path, key, metadata, value, words, checksum)
        VALUES (given.name, given.scope, 1, given.revision, moment, moment, given.expires_at,
          given.length, given.path, given.key, given.metadata, given.value, given.words,
          given.checksum)
        ON CONFLICT DO NOTHING;
        CONTINUE WHEN NOT FOUND;
      END IF;
      results[given.number] := found_version + 1;
      IF given.embedding IS NULL THEN
        DELETE FROM "archived"."locus_vectors" AS v WHERE v.name = given.name;
      ELSE
        direction := given.embedding;
        INSERT INTO "archived"."locus_vectors" (name, scope, revision, dimension, path, embedding, checksum)
        VALUES (given.name, given.scope, given.revision,
          cardinality(direction::real[]), given.path, direction, given.vector_checksum)
        ON CONFLICT (name) DO UPDATE SET revision = EXCLUDED.revision,
          dimension = EXCLUDED.dimension, embedding = EXCLUDED.embedding,
          checksum = EXCLUDED.checksum;
      END IF;
      EXIT;
    END LOOP;
  END LOOP;
  RETURN QUERY SELECT false, r.number, r.result
    FROM unnest(results) WITH ORDINALITY AS r (result, number) ORDER BY r.number;
EXCEPTION WHEN SQLSTATE 'LM001' THEN
  RETURN QUERY SELECT true, SQLERRM::bigint, results[SQLERRM::bigint];
END
$$;
CREATE TABLE archived.locus_checkpoints (
    sequence bigint NOT NULL,
    thread bigint NOT NULL,
    revision bigint NOT NULL,
    base bigint,
    created_at double precision NOT NULL,
    size bigint NOT NULL,
    seal integer NOT NULL,
    level smallint NOT NULL,
    digest bytea NOT NULL,
    checkpoint_id text NOT NULL COLLATE pg_catalog."C",
    metadata json NOT NULL,
    payload bytea NOT NULL,
    base_sequence bigint,
    forked_from text
);
ALTER TABLE ONLY archived.locus_checkpoints ALTER COLUMN payload SET STORAGE EXTERNAL;
ALTER TABLE archived.locus_checkpoints ALTER COLUMN sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME archived.locus_checkpoints_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE archived.locus_items (
    name text CONSTRAINT locus_items_id_not_null NOT NULL COLLATE pg_catalog."C",
    scope uuid NOT NULL,
    version bigint NOT NULL,
    revision bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    length integer NOT NULL,
    path text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    metadata jsonb NOT NULL,
    value jsonb NOT NULL,
    words tsvector NOT NULL,
    checksum bigint NOT NULL
);
CREATE TABLE archived.locus_migrations (
    part text NOT NULL,
    version integer NOT NULL
);
CREATE SEQUENCE archived.locus_revisions
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE archived.locus_threads (
    id bigint NOT NULL,
    removals bigint DEFAULT 0 NOT NULL,
    digest bytea NOT NULL,
    newest bytea,
    thread_id text NOT NULL COLLATE pg_catalog."C"
)
WITH (fillfactor='70', autovacuum_vacuum_threshold='1000');
ALTER TABLE archived.locus_threads ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME archived.locus_threads_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE archived.locus_vectors (
    name text CONSTRAINT locus_vectors_id_not_null NOT NULL COLLATE pg_catalog."C",
    scope uuid NOT NULL,
    revision bigint NOT NULL,
    dimension integer NOT NULL,
    path text NOT NULL COLLATE pg_catalog."C",
    embedding public.vector NOT NULL,
    checksum bigint
);
ALTER TABLE ONLY archived.locus_vectors ALTER COLUMN embedding SET STORAGE MAIN;
INSERT INTO archived.locus_checkpoints OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 734909536040057207, NULL, 1795878395.9731622, 48, 270684846, 0, '\xf32b22ace91a7039667e9c9bb1b1dd8a', 'step-0', '{"n":0}', '\x02ec962e1638ac7fef7dd8ab061676392948e947c140213f4d01146ec07a0718a6863a4a15c0520c6c8d81522d006eae0dfe6d', NULL, NULL),
	(2, 1, 8553278530961542315, 734909536040057207, 1795878395.9750881, 62, 1592001520, 0, '\x465567cf30079af59516fa2663025db2', 'step-1', '{"n":1}', '\x02dbbbcda038ac7fef7dd8835a55929f938270043c3129182ae4a729e426e6552a809403e3a9241516ce4640dd00444312786d', 1, NULL),
	(3, 1, 9213963192768699104, 8553278530961542315, 1795878395.9765847, 67, -1114060024, 0, '\x940dd50870252fc1e0f4566e4dc7b155', 'step-2', '{"n":2}', '\x0257ba4b8e38ac7fef7dd8835a55929f93822c090d29052385fc3485dcc4bc4a0801d2038cac92d402a4d80300af1d14506d', 2, NULL),
	(4, 1, 4998675069816563631, 9213963192768699104, 1795878395.9775045, 72, -1096827275, 0, '\xd26c740c333294b5a535a794605781f1', 'step-3', '{"n":3}', '\x02c908718838ac7fef7dd8835a55929f93029334466410056385fc3485dcc4bc4a2402a411186325a9b01037019a0300234316286d', 3, NULL),
	(5, 1, 4044629693860670979, 4998675069816563631, 1795878395.9784813, 77, -871908276, 0, '\x13765705c88178acacd8b8427022c8d7', 'step-4', '{"n":4}', '\x0219e9ad3338ac7fef7dd8835a55929f93029334416410051385fc3485dcc4bc4a7402a41b186d25a9b06037051a0600a09718006d', 4, NULL),
	(6, 1, 4600740657395250126, 4044629693860670979, 1795878395.9792666, 82, -814702396, 0, '\xcb52bfac18e65f660390ff02228904a5', 'step-5', '{"n":5}', '\x02aa7f012e48a87fef7dd8835a55929f93029334456410055385fc3485dcc4bc4aac04c80860dc95a4c2c2de0c682200273719d86d', 5, NULL),
	(7, 1, 8776109844497070574, 4600740657395250126, 1795878395.9800391, 87, -1487838797, 0, '\x53f6680045378403a9a0d5f98444563d', 'step-6', '{"n":6}', '\x02f82a301648a87fef7dd8835a55929f93029334436410053385fc3485dcc4bc4adc04c81c600496a4c222c01c682c00b7051bb06d', 6, NULL),
	(8, 1, 8468611587235642272, 8776109844497070574, 1795878395.9808154, 92, 1822181451, 0, '\x1ebf979e417a5bef38a08f274aff3fec', 'step-7', '{"n":7}', '\x027e858adb48a87fef7dd8835a55929f93029334476410057385fc3485dcc4bc4a0204c830602c96a4c262c102683600501f1d886d', 7, NULL),
	(9, 1, 1055311054558523349, 8468611587235642272, 1795878395.9813404, 97, -593667542, 0, '\x4f528655bf3762209302f91682badeec', 'step-8', '{"n":8}', '\x0219c02b0e48a87fef7dd8835a55929f930293b4406410050b85fc3485dcc4bc4a62089089c0a82c4985458525d00200f2671f606d', 8, NULL),
	(10, 1, 8810712378434636874, 1055311054558523349, 1795878395.981843, 103, -1983293784, 0, '\x2c48a772112c53fad962873c2e7cf71d', 'step-9', '{"n":9}', '\x020fe829ad48a87fef7dd8835a55929f930293b4446410054b85fc3485dcc4bc4aa20990b1c0f82c4985c587a101d01a00be8f215f6d', 9, NULL),
	(11, 1, 5152106790342351720, 8810712378434636874, 1795878395.982405, 110, 1750261275, 0, '\x729e31502902f7782a2ec4e50763e249', 'step-10', '{"n":10}', '\x029ef5deee48a87fef7dd8835a55929f9302778401228728181a28e4a729e426e6559246804c07466b492a2c5a0c0d81b601009dce23856d', 10, NULL),
	(12, 1, 3562685145401223246, 5152106790342351720, 1795878395.982842, 115, 903983686, 0, '\x42a3ad4f14f59957476dda4b11634acf', 'step-11', '{"n":11}', '\x02a40f20fa48a87fef7dd8835a55929f9302778421228728181a2ae4a729e426e655924180ac00c66d492a2c6e0c8d805602005f3a255d6d', 11, NULL),
	(13, 2, 734909536040057207, NULL, 1795878395.9731622, 48, -2050035991, 0, '\xf32b22ace91a7039667e9c9bb1b1dd8a', 'step-0', '{"n":0}', '\x02ec962e1638ac7fef7dd8ab061676392948e947c140213f4d01146ec07a0718a6863a4a15c0520c6c8d81522d006eae0dfe6d', NULL, NULL),
	(14, 2, 8553278530961542315, 734909536040057207, 1795878395.9750881, 62, -888619081, 0, '\x465567cf30079af59516fa2663025db2', 'step-1', '{"n":1}', '\x02dbbbcda038ac7fef7dd8835a55929f938270043c3129182ae4a729e426e6552a809403e3a9241516ce4640dd00444312786d', 13, NULL),
	(15, 2, 9213963192768699104, 8553278530961542315, 1795878395.9765847, 67, 678721359, 0, '\x940dd50870252fc1e0f4566e4dc7b155', 'step-2', '{"n":2}', '\x0257ba4b8e38ac7fef7dd8835a55929f93822c090d29052385fc3485dcc4bc4a0801d2038cac92d402a4d80300af1d14506d', 14, NULL),
	(16, 2, 4998675069816563631, 9213963192768699104, 1795878395.9775045, 72, 728957490, 0, '\xd26c740c333294b5a535a794605781f1', 'step-3', '{"n":3}', '\x02c908718838ac7fef7dd8835a55929f93029334466410056385fc3485dcc4bc4a2402a411186325a9b01037019a0300234316286d', 15, NULL),
	(17, 2, 4044629693860670979, 4998675069816563631, 1795878395.9784813, 77, 1508573195, 0, '\x13765705c88178acacd8b8427022c8d7', 'step-4', '{"n":4}', '\x0219e9ad3338ac7fef7dd8835a55929f93029334416410051385fc3485dcc4bc4a7402a41b186d25a9b06037051a0600a09718006d', 16, NULL),
	(18, 2, 4600740657395250126, 4044629693860670979, 1795878395.9792666, 82, 1520180355, 0, '\xcb52bfac18e65f660390ff02228904a5', 'step-5', '{"n":5}', '\x02aa7f012e48a87fef7dd8835a55929f93029334456410055385fc3485dcc4bc4aac04c80860dc95a4c2c2de0c682200273719d86d', 17, NULL),
	(19, 2, 8776109844497070574, 4600740657395250126, 1795878395.9800391, 87, 851303924, 0, '\x53f6680045378403a9a0d5f98444563d', 'step-6', '{"n":6}', '\x02f82a301648a87fef7dd8835a55929f93029334436410053385fc3485dcc4bc4adc04c81c600496a4c222c01c682c00b7051bb06d', 18, NULL),
	(20, 2, 8468611587235642272, 8776109844497070574, 1795878395.9808154, 92, -110038004, 0, '\x1ebf979e417a5bef38a08f274aff3fec', 'step-7', '{"n":7}', '\x027e858adb48a87fef7dd8835a55929f93029334476410057385fc3485dcc4bc4a0204c830602c96a4c262c102683600501f1d886d', 19, NULL),
	(21, 2, 1055311054558523349, 8468611587235642272, 1795878395.9813404, 97, 1232201325, 0, '\x4f528655bf3762209302f91682badeec', 'step-8', '{"n":8}', '\x0219c02b0e48a87fef7dd8835a55929f930293b4406410050b85fc3485dcc4bc4a62089089c0a82c4985458525d00200f2671f606d', 20, NULL),
	(22, 2, 8810712378434636874, 1055311054558523349, 1795878395.981843, 103, 472247023, 0, '\x2c48a772112c53fad962873c2e7cf71d', 'step-9', '{"n":9}', '\x020fe829ad48a87fef7dd8835a55929f930293b4446410054b85fc3485dcc4bc4aa20990b1c0f82c4985c587a101d01a00be8f215f6d', 21, NULL),
	(23, 2, 5152106790342351720, 8810712378434636874, 1795878395.982405, 110, -37854628, 0, '\x729e31502902f7782a2ec4e50763e249', 'step-10', '{"n":10}', '\x029ef5deee48a87fef7dd8835a55929f9302778401228728181a28e4a729e426e6559246804c07466b492a2c5a0c0d81b601009dce23856d', 22, NULL),
	(24, 2, 3562685145401223246, 5152106790342351720, 1795878395.982842, 115, -1609757183, 0, '\x42a3ad4f14f59957476dda4b11634acf', 'step-11', '{"n":11}', '\x02a40f20fa48a87fef7dd8835a55929f9302778421228728181a2ae4a729e426e655924180ac00c66d492a2c6e0c8d805602005f3a255d6d', 23, NULL),
	(25, 3, 734909536040057207, NULL, 1795878395.9731622, 48, 912180516, 0, '\xf32b22ace91a7039667e9c9bb1b1dd8a', 'step-0', '{"n":0}', '\x02ec962e1638ac7fef7dd8ab061676392948e947c140213f4d01146ec07a0718a6863a4a15c0520c6c8d81522d006eae0dfe6d', NULL, NULL),
	(26, 3, 8553278530961542315, 734909536040057207, 1795878395.9750881, 62, 2023265402, 0, '\x465567cf30079af59516fa2663025db2', 'step-1', '{"n":1}', '\x02dbbbcda038ac7fef7dd8835a55929f938270043c3129182ae4a729e426e6552a809403e3a9241516ce4640dd00444312786d', 25, NULL),
	(27, 3, 9213963192768699104, 8553278530961542315, 1795878395.9765847, 67, -1679532926, 0, '\x940dd50870252fc1e0f4566e4dc7b155', 'step-2', '{"n":2}', '\x0257ba4b8e38ac7fef7dd8835a55929f93822c090d29052385fc3485dcc4bc4a0801d2038cac92d402a4d80300af1d14506d', 26, NULL),
	(28, 3, 4998675069816563631, 9213963192768699104, 1795878395.9775045, 72, -1729943041, 0, '\xd26c740c333294b5a535a794605781f1', 'step-3', '{"n":3}', '\x02c908718838ac7fef7dd8835a55929f93029334466410056385fc3485dcc4bc4a2402a411186325a9b01037019a0300234316286d', 27, NULL),
	(29, 3, 4044629693860670979, 4998675069816563631, 1795878395.9784813, 77, -361026618, 0, '\x13765705c88178acacd8b8427022c8d7', 'step-4', '{"n":4}', '\x0219e9ad3338ac7fef7dd8835a55929f93029334416410051385fc3485dcc4bc4a7402a41b186d25a9b06037051a0600a09718006d', 28, NULL),
	(30, 3, 4600740657395250126, 4044629693860670979, 1795878395.9792666, 82, -801736424, 0, '\xcb52bfac18e65f660390ff02228904a5', 'step-5', '{"n":5}', '\x02aa7f012e48a87fef7dd8835a55929f93029334456410055385fc3485dcc4bc4aac04c80860dc95a4c2c2de0c682200273719d86d', 29, '["thread é","step-5"]');
INSERT INTO archived.locus_items VALUES
	('notescontrol', '145c70a5-b695-5572-959d-e0d29e7de0b3', 1, 5, '2026-11-28 15:06:35.797577+00', '2026-11-28 15:06:35.797577+00', NULL, 3, 'notes', 'control', '{}', '"a\u0001\u0001\u0001\u0002b\u0001\u0001\u0002\u0002c\u0001\u0002\u0002\u0002\u0001\u0002\u0002\u0002\u0001\u0001\u0002\u0002"', '''a'':1 ''b'':2 ''c'':3', -7973858223070147726),
	('noteslarge', '145c70a5-b695-5572-959d-e0d29e7de0b3', 1, 3, '2026-11-28 15:06:35.797577+00', '2026-11-28 15:06:35.797577+00', NULL, 0, 'notes', 'large', '{}', '1500000000000000078757140382806630373056702871662238732373781173267703686983362293679557062620671796065556665749325817265413784853040645863467188277180060474272580801389863705606745350692182135089053429852456199917621678558451461320111979114170213741868888183230085264257173504208294580298189100810240.0', '', -5334029106538852142),
	('noteslist', '145c70a5-b695-5572-959d-e0d29e7de0b3', 1, 6, '2026-11-28 15:06:35.797577+00', '2026-11-28 15:06:35.797577+00', NULL, 1, 'notes', 'list', '{}', '[1, 2.5, "three", null, true, {"four": [4]}]', '''three'':1', -4130660117114921194),
	('notesnothing', '145c70a5-b695-5572-959d-e0d29e7de0b3', 1, 4, '2026-11-28 15:06:35.797577+00', '2026-11-28 15:06:35.797577+00', NULL, 0, 'notes', 'nothing', '{}', 'null', '', 6557964743900873554),
	('notesnumber', '145c70a5-b695-5572-959d-e0d29e7de0b3', 1, 2, '2026-11-28 15:06:35.797577+00', '2026-11-28 15:06:35.797577+00', NULL, 0, 'notes', 'number', '{}', '9223372036854775807', '', 9011903567433262386),
	('notesadaemoji', '9fbace96-0d47-03bf-9fec-1ecf06179148', 1, 11, '2026-11-28 15:06:35.82368+00', '2026-11-28 15:06:35.82368+00', NULL, 1, 'notesada', 'emoji', '{}', '"🦭 walrus 🧊"', '''walru'':1', -8832631433777374318),
	('notesadastraße', '9fbace96-0d47-03bf-9fec-1ecf06179148', 1, 7, '2026-11-28 15:06:35.82368+00', '2026-11-28 15:06:35.82368+00', NULL, 7, 'notesada', 'straße', '{}', '"Die Straße nach München ist gesperrt."', '''die'':1 ''gesperrt'':6 ''ist'':5 ''munch'':7 ''munchen'':4 ''nach'':3 ''strass'':2', -1686267580652712688),
	('notesadaΕλλάδα', '9fbace96-0d47-03bf-9fec-1ecf06179148', 1, 9, '2026-11-28 15:06:35.82368+00', '2026-11-28 15:06:35.82368+00', NULL, 5, 'notesada', 'Ελλάδα', '{}', '{"text": "Τώρα η Αθήνα είναι πρωτεύουσα."}', '''αθηνα'':3 ''ειναι'':4 ''η'':2 ''πρωτευουσα'':5 ''τωρα'':1', -508530658999614406),
	('notesadaالعربية', '9fbace96-0d47-03bf-9fec-1ecf06179148', 1, 10, '2026-11-28 15:06:35.82368+00', '2026-11-28 15:06:35.82368+00', NULL, 7, 'notesada', 'العربية', '{}', '"المكتبة مفتوحة يوم الجمعة"', '''الجمعة'':4 ''المكتبة'':1 ''جمع'':7 ''مفتوح'':6 ''مفتوحة'':2 ''مكتب'':5 ''يوم'':3', -3457820388835451840),
	('notesada京都', '9fbace96-0d47-03bf-9fec-1ecf06179148', 1, 8, '2026-11-28 15:06:35.82368+00', '2026-11-28 15:06:35.82368+00', NULL, 19, 'notesada', '京都', '{}', '"京都の寺院は静かです。"', '''か'':15 ''かで'':16 ''す'':19 ''で'':17 ''です'':18 ''の'':5 ''の寺'':6 ''は'':11 ''は静'':12 ''京'':1 ''京都'':2 ''寺'':7 ''寺院'':8 ''都'':3 ''都の'':4 ''院'':9 ''院は'':10 ''静'':13 ''静か'':14', 5225728565644366358),
	('longxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx4388f5a95bbd5765654f72b66411f4283db0adf605f54555153e7484616ff9a5', '4ad09d9e-894a-d9df-5d9c-6cbc9b572fab', 1, 14, '2026-11-28 15:06:35.825447+00', '2026-11-28 15:06:35.825447+00', NULL, 1, 'longxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', 'k', '{}', '"short"', '''short'':1', 4164516567445490272),
	('longxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx542238fc82c9bb389f4bff2c1832e4ffc98001e6bf3bd7e1461d793d4330e38e', '4ad09d9e-894a-d9df-5d9c-6cbc9b572fab', 1, 12, '2026-11-28 15:06:35.825447+00', '2026-11-28 15:06:35.825447+00', NULL, 1, 'longxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', 'kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk', '{}', '"cut"', '''cut'':1', -3543849035420055094),
	('longxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx8d558f964822f7a651dfbed18176877dbe9bbe0c7877f34d3895dd92f180f223', '4ad09d9e-894a-d9df-5d9c-6cbc9b572fab', 1, 13, '2026-11-28 15:06:35.825447+00', '2026-11-28 15:06:35.825447+00', NULL, 3, 'longxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', 'kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkké', '{}', '"cut as well"', '''as'':2 ''cut'':1 ''well'':3', 4135049943183626246),
	('a.b/c%_\''"%_\''"', '87f50694-18ce-6c12-3391-487574ca8f2d', 1, 15, '2026-11-28 15:06:35.827006+00', '2026-11-28 15:06:35.827006+00', NULL, 1, 'a.b/c%_\''"', '%_\''"', '{}', '"quoted"', '''quot'':1', 3925625401414945500),
	('notesplain', '145c70a5-b695-5572-959d-e0d29e7de0b3', 2, 16, '2026-11-28 15:06:35.797577+00', '2026-11-28 15:06:35.82917+00', NULL, 6, 'notes', 'plain', '{"deep": {"er": [1, "\u0001\u0001\u0001\u0002"]}, "kind": "note", "when": "2026-01-02"}', '{"rank": 1, "text": "The walrus sleeps on the ice."}', '''ic'':6 ''on'':4 ''sleep'':3 ''the'':1,5 ''walru'':2', -6384972903671612116),
	('placesbetween', 'b0ad7b54-7a8a-ec55-8011-ee817a28fcd1', 1, 19, '2026-11-28 15:06:35.965963+00', '2026-11-28 15:06:35.965963+00', NULL, 1, 'places', 'between', '{}', '{"at": "between"}', '''between'':1', -7153015527431486665),
	('placeseast', 'b0ad7b54-7a8a-ec55-8011-ee817a28fcd1', 1, 18, '2026-11-28 15:06:35.965963+00', '2026-11-28 15:06:35.965963+00', NULL, 1, 'places', 'east', '{}', '{"at": "east"}', '''east'':1', 8257491300873611071),
	('placesnorth', 'b0ad7b54-7a8a-ec55-8011-ee817a28fcd1', 1, 17, '2026-11-28 15:06:35.965963+00', '2026-11-28 15:06:35.965963+00', NULL, 1, 'places', 'north', '{}', '{"at": "north"}', '''north'':1', -7558330640067575307),
	('expiringgone', 'c4af1180-c2a5-31a1-8d55-5fed3ca47dc7', 1, 20, '2026-11-28 15:06:35.970731+00', '2026-11-28 15:06:35.970731+00', '2026-11-28 15:06:35.971731+00', 0, 'expiring', 'gone', '{}', '1', '', -5189454345973876624);
INSERT INTO archived.locus_migrations VALUES
	('core', 7),
	('vector', 4);
INSERT INTO archived.locus_threads OVERRIDING SYSTEM VALUE VALUES
	(1, 0, '\x45211c24d5c8a03f7ef920317f7ca56d', '\x42a3ad4f14f59957476dda4b11634acf', 'thread é'),
	(2, 0, '\x93434fb860aecbb2d9102a20fb61c165', '\x42a3ad4f14f59957476dda4b11634acf', 'copy'),
	(3, 0, '\x1d53ddd07b736cea6e873875cf4453ec', '\xcb52bfac18e65f660390ff02228904a5', 'fork');
INSERT INTO archived.locus_vectors VALUES
	('placesbetween', 'b0ad7b54-7a8a-ec55-8011-ee817a28fcd1', 19, 3, 'places', '[0.6,0.8,0]', 1478441409),
	('placeseast', 'b0ad7b54-7a8a-ec55-8011-ee817a28fcd1', 18, 3, 'places', '[1,0,0]', 454861527),
	('placesnorth', 'b0ad7b54-7a8a-ec55-8011-ee817a28fcd1', 17, 3, 'places', '[0,1,0]', 647526635);
SELECT pg_catalog.setval('archived.locus_checkpoints_sequence_seq', 30, true);
SELECT pg_catalog.setval('archived.locus_revisions', 20, true);
SELECT pg_catalog.setval('archived.locus_threads_id_seq', 3, true);
ALTER TABLE ONLY archived.locus_checkpoints
    ADD CONSTRAINT locus_checkpoints_pkey PRIMARY KEY (thread, sequence);
ALTER TABLE ONLY archived.locus_items
    ADD CONSTRAINT locus_items_pkey PRIMARY KEY (name) INCLUDE (length);
ALTER TABLE ONLY archived.locus_migrations
    ADD CONSTRAINT locus_migrations_pkey PRIMARY KEY (part);
ALTER TABLE ONLY archived.locus_threads
    ADD CONSTRAINT locus_threads_pkey PRIMARY KEY (id);
ALTER TABLE ONLY archived.locus_vectors
    ADD CONSTRAINT locus_vectors_pkey PRIMARY KEY (name);
CREATE UNIQUE INDEX locus_checkpoints_by_digest ON archived.locus_checkpoints USING btree (thread, digest);
CREATE INDEX locus_items_by_expiry ON archived.locus_items USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX locus_items_by_revision ON archived.locus_items USING btree (scope, revision) INCLUDE (length);
CREATE INDEX locus_items_by_word ON archived.locus_items USING gin (words);
CREATE UNIQUE INDEX locus_threads_by_digest ON archived.locus_threads USING btree (digest);
CREATE INDEX locus_threads_by_name ON archived.locus_threads USING btree ("left"(thread_id, 500));
CREATE INDEX locus_vectors_by_scope ON archived.locus_vectors USING btree (scope, dimension);
ALTER TABLE ONLY archived.locus_vectors
    ADD CONSTRAINT locus_vectors_name_fkey FOREIGN KEY (name) REFERENCES archived.locus_items(name) ON DELETE CASCADE;

CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `session` (
          `id` text PRIMARY KEY,
          `project_id` text NOT NULL,
          `workspace_id` text,
          `parent_id` text,
          `slug` text NOT NULL,
          `directory` text NOT NULL,
          `path` text,
          `title` text NOT NULL,
          `version` text NOT NULL,
          `share_url` text,
          `summary_additions` integer,
          `summary_deletions` integer,
          `summary_files` integer,
          `summary_diffs` text,
          `metadata` text,
          `cost` real DEFAULT 0 NOT NULL,
          `tokens_input` integer DEFAULT 0 NOT NULL,
          `tokens_output` integer DEFAULT 0 NOT NULL,
          `tokens_reasoning` integer DEFAULT 0 NOT NULL,
          `tokens_cache_read` integer DEFAULT 0 NOT NULL,
          `tokens_cache_write` integer DEFAULT 0 NOT NULL,
          `revert` text,
          `permission` text,
          `agent` text,
          `model` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_compacting` integer,
          `time_archived` integer,
          CONSTRAINT `fk_session_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
        );
INSERT INTO session VALUES ('ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 'global', NULL, NULL, 'neon-comet', '/home/ada/my project', '', 'New session - 2026-11-19T06:35:53.862Z', '1.18.34', NULL, 0, 0, 0, NULL, NULL, 0.0, 8322, 105, 3, 37888, 0, NULL, '[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]', 'build', '{"id":"fake","providerID":"fake","variant":"default"}', 1795070153862, 1795070194168, NULL, NULL);
INSERT INTO message VALUES ('msg_1f284d756001BFU24S5TiRqoSx', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070154582, 1795070166821, '{"role":"user","time":{"created":1795070154582},"agent":"build","model":{"providerID":"fake","modelID":"fake"},"summary":{"diffs":[{"file":"a.txt","patch":"Index: a.txt\n===================================================================\n--- a.txt\t\n+++ a.txt\t\n@@ -0,0 +1,3 @@\n+one\n+2\n+three\n","additions":3,"deletions":0,"status":"added"}]}}');
INSERT INTO message VALUES ('msg_1f284e5e2001vcAD2qG71g2ncC', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070158306, 1795070163672, '{"parentID":"msg_1f284d756001BFU24S5TiRqoSx","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/ada/my project","root":"/home/ada/my project"},"cost":0,"tokens":{"total":7547,"input":7515,"output":29,"reasoning":3,"cache":{"write":0,"read":0}},"modelID":"fake","providerID":"fake","time":{"created":1795070158306,"completed":1795070163671},"finish":"tool-calls"}');
INSERT INTO message VALUES ('msg_1f284fada0018frQcnI2db2ubp', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070163674, 1795070164366, '{"parentID":"msg_1f284d756001BFU24S5TiRqoSx","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/ada/my project","root":"/home/ada/my project"},"cost":0,"tokens":{"total":7622,"input":167,"output":31,"reasoning":0,"cache":{"write":0,"read":7424}},"modelID":"fake","providerID":"fake","time":{"created":1795070163674,"completed":1795070164365},"finish":"tool-calls"}');
INSERT INTO message VALUES ('msg_1f284fd900015cdQoCicC3Fvox', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070164368, 1795070165915, '{"parentID":"msg_1f284d756001BFU24S5TiRqoSx","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/ada/my project","root":"/home/ada/my project"},"cost":0,"tokens":{"total":7689,"input":116,"output":21,"reasoning":0,"cache":{"write":0,"read":7552}},"modelID":"fake","providerID":"fake","time":{"created":1795070164368,"completed":1795070165913},"finish":"tool-calls"}');
INSERT INTO message VALUES ('msg_1f285039e0015pw2qSIoRPB4aX', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070165919, 1795070166529, '{"parentID":"msg_1f284d756001BFU24S5TiRqoSx","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/ada/my project","root":"/home/ada/my project"},"cost":0,"tokens":{"total":7757,"input":186,"output":19,"reasoning":0,"cache":{"write":0,"read":7552}},"modelID":"fake","providerID":"fake","time":{"created":1795070165919,"completed":1795070166528},"finish":"tool-calls"}');
INSERT INTO message VALUES ('msg_1f2850605001MGbV7de0jjS12a', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070166533, 1795070166961, '{"parentID":"msg_1f284d756001BFU24S5TiRqoSx","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/ada/my project","root":"/home/ada/my project"},"cost":0,"tokens":{"total":7803,"input":120,"output":3,"reasoning":0,"cache":{"write":0,"read":7680}},"modelID":"fake","providerID":"fake","time":{"created":1795070166533,"completed":1795070166960},"finish":"stop"}');
INSERT INTO message VALUES ('msg_1f2852a2a001J6J2724JW5KeBo', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070175786, 1795070179878, '{"role":"user","time":{"created":1795070175786},"agent":"build","model":{"providerID":"fake","modelID":"fake"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES ('msg_1f2853942001Eg2Gza1MVcYDZI', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070179650, 1795070183436, '{"parentID":"msg_1f2852a2a001J6J2724JW5KeBo","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/ada/my project","root":"/home/ada/my project"},"cost":0,"tokens":{"total":7900,"input":218,"output":2,"reasoning":0,"cache":{"write":0,"read":7680}},"modelID":"fake","providerID":"fake","time":{"created":1795070179650,"completed":1795070183434},"finish":"stop"}');
INSERT INTO message VALUES ('msg_1f28565570010wCJ7gP6v2j33B', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070190936, 1795070194174, '{"role":"user","time":{"created":1795070190936},"agent":"build","model":{"providerID":"fake","modelID":"fake"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES ('msg_1f28571b8001msTZM95QzGS5cs', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070194104, 1795070194106, '{"parentID":"msg_1f28565570010wCJ7gP6v2j33B","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/ada/my project","root":"/home/ada/my project"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"modelID":"fake","providerID":"fake","time":{"created":1795070194104}}');
INSERT INTO part VALUES ('prt_1f284d763001kZmNyRcPP7Q5tr', 'msg_1f284d756001BFU24S5TiRqoSx', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070154624, 1795070154628, '{"type":"text","text":"Please work on it. [[think=Let me see]][[tool=write:{\"filePath\": \"/home/ada/my project/a.txt\", \"content\": \"one\\ntwo\\nthree\\n\"}]][[next]][[tool=edit:{\"filePath\": \"/home/ada/my project/a.txt\", \"oldString\": \"two\", \"newString\": \"2\"}]][[next]][[tool=bash:{\"command\": \"echo hello; ls\", \"description\": \"List\"}]][[next]][[tool=bash:{\"command\": \"exit 3\", \"description\": \"Fail\"}]][[next]][[say=All done here]]"}');
INSERT INTO part VALUES ('prt_1f284f7d2001E7ogSxZgiIpl5q', 'msg_1f284e5e2001vcAD2qG71g2ncC', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070162898, 1795070162916, '{"snapshot":"2f0e4f9780b9675b9f098ed675c54eec83a400d7","type":"step-start"}');
INSERT INTO part VALUES ('prt_1f284f7e6001R9Vrlw9k5D0VXf', 'msg_1f284e5e2001vcAD2qG71g2ncC', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070162918, 1795070163024, '{"type":"tool","tool":"write","callID":"call_ed94d5326f724117abe4e5e6","state":{"status":"completed","input":{"filePath":"/home/ada/my project/a.txt","content":"one\ntwo\nthree\n"},"output":"Wrote file successfully.","metadata":{"diagnostics":{},"filepath":"/home/ada/my project/a.txt","exists":false,"truncated":false},"title":"a.txt","time":{"start":1795070162986,"end":1795070163023}}}');
INSERT INTO part VALUES ('prt_1f284fa9a001rM4mwxqOsqn3Ll', 'msg_1f284e5e2001vcAD2qG71g2ncC', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070163611, 1795070163613, '{"reason":"tool-calls","snapshot":"f30f328da31c89662595732e4fad102a1e4a3179","type":"step-finish","tokens":{"total":7547,"input":7515,"output":29,"reasoning":3,"cache":{"write":0,"read":0}},"cost":0}');
INSERT INTO part VALUES ('prt_1f284fad3001wwluqBXLMrguFi', 'msg_1f284e5e2001vcAD2qG71g2ncC', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070163667, 1795070163669, '{"type":"patch","hash":"2f0e4f9780b9675b9f098ed675c54eec83a400d7","files":["/home/ada/my project/a.txt"]}');
INSERT INTO part VALUES ('prt_1f284fba0001EUfHfx3iIa5SZX', 'msg_1f284fada0018frQcnI2db2ubp', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070163873, 1795070163874, '{"snapshot":"f30f328da31c89662595732e4fad102a1e4a3179","type":"step-start"}');
INSERT INTO part VALUES ('prt_1f284fba3001AeUuGqxkc8v5bF', 'msg_1f284fada0018frQcnI2db2ubp', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070163875, 1795070164130, '{"type":"tool","tool":"edit","callID":"call_99cbd12aeb2c47cb840fe435","state":{"status":"completed","input":{"filePath":"/home/ada/my project/a.txt","oldString":"two","newString":"2"},"output":"Edit applied successfully.","metadata":{"diagnostics":{},"diff":"Index: /home/ada/my project/a.txt\n===================================================================\n--- /home/ada/my project/a.txt\n+++ /home/ada/my project/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n","filediff":{"file":"/home/ada/my project/a.txt","patch":"Index: /home/ada/my project/a.txt\n===================================================================\n--- /home/ada/my project/a.txt\n+++ /home/ada/my project/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n","additions":1,"deletions":1},"truncated":false},"title":"a.txt","time":{"start":1795070163897,"end":1795070164129}}}');
INSERT INTO part VALUES ('prt_1f284fd6b001V3M7PY23YF04ax', 'msg_1f284fada0018frQcnI2db2ubp', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070164331, 1795070164332, '{"reason":"tool-calls","snapshot":"53a57142834b636108a647edf4d00f08bb5b7c88","type":"step-finish","tokens":{"total":7622,"input":167,"output":31,"reasoning":0,"cache":{"write":0,"read":7424}},"cost":0}');
INSERT INTO part VALUES ('prt_1f284fd8a0019uNxC3J3jJVlU3', 'msg_1f284fada0018frQcnI2db2ubp', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070164362, 1795070164363, '{"type":"patch","hash":"f30f328da31c89662595732e4fad102a1e4a3179","files":["/home/ada/my project/a.txt"]}');
INSERT INTO part VALUES ('prt_1f284fdde001BEgZUvQSL0QmXs', 'msg_1f284fd900015cdQoCicC3Fvox', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070164446, 1795070164448, '{"snapshot":"53a57142834b636108a647edf4d00f08bb5b7c88","type":"step-start"}');
INSERT INTO part VALUES ('prt_1f284fde0001XOZLJROhQqbfjU', 'msg_1f284fd900015cdQoCicC3Fvox', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070164449, 1795070165116, '{"type":"tool","tool":"bash","callID":"call_129ef04db6364611b9ea8b2f","state":{"status":"completed","input":{"command":"echo hello; ls","description":"List"},"output":"hello\na.txt\nopencode.json\nred.png\n","metadata":{"output":"hello\na.txt\nopencode.json\nred.png\n","exit":0,"truncated":false},"title":"echo hello; ls","time":{"start":1795070164455,"end":1795070165112}}}');
INSERT INTO part VALUES ('prt_1f285011b001mQb1GiJ80pTgaI', 'msg_1f284fd900015cdQoCicC3Fvox', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070165275, 1795070165284, '{"reason":"tool-calls","snapshot":"53a57142834b636108a647edf4d00f08bb5b7c88","type":"step-finish","tokens":{"total":7689,"input":116,"output":21,"reasoning":0,"cache":{"write":0,"read":7552}},"cost":0}');
INSERT INTO part VALUES ('prt_1f2850498001bXZ5qKzBHNHOgB', 'msg_1f285039e0015pw2qSIoRPB4aX', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070166168, 1795070166169, '{"snapshot":"53a57142834b636108a647edf4d00f08bb5b7c88","type":"step-start"}');
INSERT INTO part VALUES ('prt_1f285049a001fuOum2n0IGqSw3', 'msg_1f285039e0015pw2qSIoRPB4aX', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070166170, 1795070166225, '{"type":"tool","tool":"bash","callID":"call_cafac33bb53e4adca7270505","state":{"status":"completed","input":{"command":"exit 3","description":"Fail"},"output":"(no output)","metadata":{"output":"(no output)","exit":3,"truncated":false},"title":"exit 3","time":{"start":1795070166197,"end":1795070166225}}}');
INSERT INTO part VALUES ('prt_1f2850584001fdVdd0Jg61uIvF', 'msg_1f285039e0015pw2qSIoRPB4aX', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070166404, 1795070166405, '{"reason":"tool-calls","snapshot":"53a57142834b636108a647edf4d00f08bb5b7c88","type":"step-finish","tokens":{"total":7757,"input":186,"output":19,"reasoning":0,"cache":{"write":0,"read":7552}},"cost":0}');
INSERT INTO part VALUES ('prt_1f2850679001MfkOngvZ6vq3z6', 'msg_1f2850605001MGbV7de0jjS12a', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070166649, 1795070166650, '{"snapshot":"53a57142834b636108a647edf4d00f08bb5b7c88","type":"step-start"}');
INSERT INTO part VALUES ('prt_1f285067b001ZT73OFjOx6HmK6', 'msg_1f2850605001MGbV7de0jjS12a', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070166651, 1795070166654, '{"type":"text","text":"All done here","time":{"start":1795070166651,"end":1795070166653}}');
INSERT INTO part VALUES ('prt_1f285074a001EWWHt36eBSDbb3', 'msg_1f2850605001MGbV7de0jjS12a', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070166858, 1795070166859, '{"reason":"stop","snapshot":"53a57142834b636108a647edf4d00f08bb5b7c88","type":"step-finish","tokens":{"total":7803,"input":120,"output":3,"reasoning":0,"cache":{"write":0,"read":7680}},"cost":0}');
INSERT INTO part VALUES ('prt_1f2853899001TZ5pN5gKw3TAtn', 'msg_1f2852a2a001J6J2724JW5KeBo', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070179575, 1795070179577, '{"type":"text","synthetic":true,"text":"Called the Read tool with the following input: {\"filePath\":\"/home/ada/my project/red.png\"}"}');
INSERT INTO part VALUES ('prt_1f2853899002G2LZbVAlI3JVb1', 'msg_1f2852a2a001J6J2724JW5KeBo', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070179578, 1795070179579, '{"type":"text","synthetic":true,"text":"Image read successfully"}');
INSERT INTO part VALUES ('prt_1f2853899003nJx9fX7KRwom8a', 'msg_1f2852a2a001J6J2724JW5KeBo', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070179580, 1795070179581, '{"type":"file","mime":"image/png","url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAC0lEQVR4nGNgQAYAAA4AAamRc7EAAAAASUVORK5CYII=","synthetic":true,"filename":"red.png"}');
INSERT INTO part VALUES ('prt_1f2853899004IXMAx9wgA43f5Q', 'msg_1f2852a2a001J6J2724JW5KeBo', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070179581, 1795070179582, '{"type":"text","text":"And a second question [[say=Second answer]]"}');
INSERT INTO part VALUES ('prt_1f2854505001hg7IAWdjZOlZpm', 'msg_1f2853942001Eg2Gza1MVcYDZI', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070182662, 1795070182666, '{"snapshot":"53a57142834b636108a647edf4d00f08bb5b7c88","type":"step-start"}');
INSERT INTO part VALUES ('prt_1f2854515001f6oCuCW6x3BiKD', 'msg_1f2853942001Eg2Gza1MVcYDZI', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070182677, 1795070182704, '{"type":"text","text":"Second answer","time":{"start":1795070182677,"end":1795070182700}}');
INSERT INTO part VALUES ('prt_1f285469b001KWd1uaZUF5uHEt', 'msg_1f2853942001Eg2Gza1MVcYDZI', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070183069, 1795070183081, '{"reason":"stop","snapshot":"53a57142834b636108a647edf4d00f08bb5b7c88","type":"step-finish","tokens":{"total":7900,"input":218,"output":2,"reasoning":0,"cache":{"write":0,"read":7680}},"cost":0}');
INSERT INTO part VALUES ('prt_1f285655a001ime0WvatY81RMS', 'msg_1f28565570010wCJ7gP6v2j33B', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070190971, 1795070191039, '{"type":"text","text":"Long one [[tool=bash:{\"command\": \"python3 -c ''import time; time.sleep(300)''\", \"description\": \"Wait\"}]]"}');
INSERT INTO part VALUES ('prt_1f2857ef3001mnvkwxZlfkazL3', 'msg_1f28571b8001msTZM95QzGS5cs', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070197499, 1795070197501, '{"snapshot":"53a57142834b636108a647edf4d00f08bb5b7c88","type":"step-start"}');
INSERT INTO part VALUES ('prt_1f2857efe0016kmCXGFl03KfpL', 'msg_1f28571b8001msTZM95QzGS5cs', 'ses_e0d7b2b79ffeCHVYsPDjRvsxTe', 1795070197502, 1795070198243, '{"type":"tool","tool":"bash","callID":"call_52a9205e1cd346cc9915cd3b","state":{"metadata":{"output":""},"status":"running","input":{"command":"python3 -c ''import time; time.sleep(300)''","description":"Wait"},"time":{"start":1795070197634}}}');
